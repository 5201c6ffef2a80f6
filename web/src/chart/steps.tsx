// Where the step goes: phases stacked over the steps, each block as wide as its steps.
import { useMemo, useCallback } from "preact/hooks";
import uPlot from "uplot";
import type { RunEvent, Series } from "../api.ts";
import { digits, duration, steps as stepsText } from "../format.ts";
import { blockOf } from "../series.ts";
import { Frame, type Domain } from "./frame.tsx";
import { drawEvents, Plot } from "./plot.tsx";
import { colour, phaseClass } from "./theme.ts";

interface Props {
  series: Series;
  domain: Domain;
  only: string | null; // this phase alone
  full: boolean;
  events: readonly RunEvent[];
  dark: boolean;
  height: number;
}

const USUAL = 0.98; // of the blocks; what is far above them is cut, unless `full`
const FAR = 2.5;

// The top of the axis, and how many blocks reach beyond it.
export function topOf(
  values: readonly (number | null)[],
  first: number,
  full: boolean,
): { top: number; cut: number } {
  const steady = values.filter((value, at): value is number => value !== null && at >= first);
  const of = steady.length > 0 ? steady : values.filter((value): value is number => value !== null);
  if (of.length === 0) return { top: 1, cut: 0 };
  const sorted = [...of].sort((a, b) => a - b);
  const most = full ? Math.max(...values.map((value) => value ?? 0)) : sorted.at(-1)!;
  const usual = sorted[Math.floor((sorted.length - 1) * USUAL)]!;
  const top = (!full && most > FAR * usual && usual > 0 ? usual * 1.3 : most * 1.06) || 1;
  return { top, cut: values.reduce<number>((count, value) => count + ((value ?? 0) > top ? 1 : 0), 0) };
}

const stepped = uPlot.paths.stepped!({ align: 1 });

export function StepsChart({ series, domain, only, full, events, dark, height }: Props) {
  const users = series.phases.filter((phase) => phase.user).map((phase) => phase.name);
  // Only what has time in it; the others would be lines of no height.
  const phases = series.phases.filter(
    (phase) =>
      (only === null || phase.name === only) && phase.ms.some((value) => value !== null && value > 0),
  );
  const shape = `${phases.map((phase) => phase.name).join("/")}|${only ?? ""}`;

  const { data, top, cut, warm } = useMemo(() => {
    const end = series.last_step.length > 0 ? [series.last_step.at(-1)! + 1] : [];
    const again = <T,>(column: T[]): T[] => (column.length > 0 ? [...column, column.at(-1)!] : column);
    const sums: (number | null)[][] = [];
    let below: (number | null)[] = series.count.map(() => 0);
    for (const phase of phases) {
      below = below.map((sum, at) =>
        series.total_ms[at] === null ? null : (sum ?? 0) + (phase.ms[at] ?? 0),
      );
      sums.push(below);
    }
    const blocks = series.count.some((count) => count > 1);
    const longest = series.total_max_ms.map((value, at) => (blocks && series.count[at]! > 1 ? value : null));
    const warm = series.warmup_until ?? 0;
    const inDomain = below.map((value, at) =>
      series.last_step[at]! >= domain.from && series.first_step[at]! < domain.to ? value : null,
    );
    const { top, cut } = topOf(inDomain, Math.max(0, blockOf(series.first_step, warm)), full);
    const columns = [[...series.first_step, ...end], ...sums.reverse().map(again)];
    columns.push(again(only === null ? longest : longest.map(() => null)));
    return { data: columns as uPlot.AlignedData, top, cut, warm };
  }, [series, shape, full, domain.from, domain.to]);

  const lines = [...phases].reverse().map((phase): uPlot.Series => {
    const fill = colour(phaseClass(phase.name, users), dark);
    return { fill, stroke: fill, width: 0, paths: stepped, points: { show: false } };
  });
  lines.push({ stroke: colour("faint", dark), width: 1, paths: stepped, points: { show: false } });

  const under = useCallback(
    (u: uPlot) => {
      if (warm <= domain.from) return;
      const { ctx, bbox } = u;
      const x = u.valToPos(Math.min(warm, domain.to), "x", true);
      ctx.fillStyle = colour("warm", dark);
      ctx.fillRect(bbox.left, bbox.top, x - bbox.left, bbox.height);
    },
    [warm, domain.from, domain.to, dark],
  );
  const over = useCallback(
    (u: uPlot) => {
      drawEvents(u, events, dark, (step) => step);
      if (warm <= domain.from) return;
      const { ctx, bbox } = u;
      const x = Math.round(u.valToPos(Math.min(warm, domain.to), "x", true));
      if (x - bbox.left < 2) return;
      ctx.fillStyle = colour("veil", dark);
      ctx.fillRect(bbox.left, bbox.top, x - bbox.left, bbox.height);
    },
    [events, warm, domain.from, domain.to, dark],
  );

  const label =
    `Time of each step by phase, ${stepsText(domain.from, domain.to - 1)}, up to ${duration(top)}. ` +
    "The table beside it has the numbers.";
  return (
    <>
      <Frame label={label} height={height} domain={domain}>
        {(width) => (
          <Plot
            {...{ width, height, domain, top, data, shape, dark, under, over }}
            series={lines}
            xStepped
            axis={(value) =>
              value === 0 ? "0" : value >= 1000 ? `${digits(value / 1000)} s` : `${trimmed(value)} ms`
            }
          />
        )}
      </Frame>
      {cut > 0 && (
        <p class="under">
          {cut} of {series.count.length} {series.count.some((it) => it > 1) ? "blocks" : "steps"} reach above
          the axis: <kbd>y</kbd> shows them whole
        </p>
      )}
    </>
  );
}

const trimmed = (value: number) => String(Number(value.toPrecision(6)));
