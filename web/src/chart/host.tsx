// One resource over time, a line a rank. Time runs along x, because a machine is busy between steps too; the crosshair
// is at the moment of the step that it shows elsewhere.
import { useCallback, useMemo } from "preact/hooks";
import type uPlot from "uplot";
import type { Maybe, ResourceSeries, RunEvent, Series } from "../api.ts";
import { digits, span, withUnit } from "../format.ts";
import { stepAt, timeOf } from "../series.ts";
import { Frame, type Domain } from "./frame.tsx";
import { drawEvents, Plot } from "./plot.tsx";
import { colour, lineClass } from "./theme.ts";

interface Props {
  title: string;
  time_s: number[];
  lines: ResourceSeries["series"];
  limit: Maybe;
  unit: string;
  steps: Series;
  domain: Domain; // in steps
  events: readonly RunEvent[];
  dark: boolean;
}

const HEIGHT = 120;

export function HostChart({ title, time_s, lines, limit, unit, steps, domain, events, dark }: Props) {
  const seconds: Domain = useMemo(() => {
    const from = timeOf(steps, domain.from) ?? time_s[0] ?? 0;
    const to = timeOf(steps, domain.to) ?? time_s.at(-1) ?? from + 1;
    return { from, to: to > from ? to : from + 1 };
  }, [steps, domain.from, domain.to, time_s]);
  const data = useMemo(
    () => [time_s, ...lines.map((line) => line.values)] as uPlot.AlignedData,
    [time_s, lines],
  );
  const most = lines.reduce(
    (top, line) => line.values.reduce<number>((high, value) => Math.max(high, value ?? 0), top),
    0,
  );
  // A limit far above would press the lines flat.
  const limited = limit !== null && limit <= most * 3;
  const top = (limited ? Math.max(most, limit!) : most) * 1.08 || 1;
  const over = useCallback(
    (u: uPlot) => {
      drawEvents(u, events, dark, (step) => timeOf(steps, step));
      if (!limited) return;
      const { ctx, bbox } = u;
      const y = Math.round(u.valToPos(limit!, "y", true)) + 0.5;
      ctx.save();
      ctx.strokeStyle = colour("s-critical", dark);
      ctx.lineWidth = devicePixelRatio;
      ctx.beginPath();
      ctx.moveTo(bbox.left, y);
      ctx.lineTo(bbox.left + bbox.width, y);
      ctx.stroke();
      ctx.restore();
    },
    [events, steps, limited, limit, dark],
  );
  const series = lines.map((line, index): uPlot.Series => ({
    stroke: colour(lineClass(index), dark),
    width: 1.25,
    points: { show: false },
    spanGaps: true, // CPU is read less often than memory
    ...(line.name.startsWith("worker") && { dash: [4, 3] }),
  }));
  const label = `${title} over time, ${lines.length} lines, up to ${withUnit(most, unit)}`;
  const axis = (value: number) =>
    value === 0 ? "0" : unit === "bytes" ? withUnit(value, unit) : digits(value);
  return (
    <Frame
      {...{ label }}
      height={HEIGHT}
      domain={seconds}
      toStep={(value) => stepAt(steps, value)}
      toValue={(step) => timeOf(steps, step)}
    >
      {(width) => (
        <Plot
          {...{ width, top, data, series, dark, over, axis }}
          height={HEIGHT}
          domain={seconds}
          shape={lines.map((line) => `${line.name}${line.rank ?? line.node}`).join()}
          xAxis={(value) => (value === 0 ? "0 s" : span(value).replace(".0 ", " "))}
        />
      )}
    </Frame>
  );
}
