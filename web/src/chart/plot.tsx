// uPlot as a view: lines and axes are its work, crosshair and brush are the frame's.
//
// Invariant: data of the same shape is set, not built anew; `shape` says when it is not the same.
import { useLayoutEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import type { RunEvent } from "../api.ts";
import { LEFT, RIGHT, type Domain } from "./frame.tsx";
import { colour } from "./theme.ts";

export interface PlotProps {
  width: number;
  height: number;
  domain: Domain;
  top: number; // of the axis
  data: uPlot.AlignedData;
  series: uPlot.Series[]; // without the first, which is x
  shape: string; // another shape: another uPlot
  dark: boolean;
  axis: (value: number) => string; // labels of y
  xAxis?: (value: number) => string;
  xStepped?: boolean; // x is whole numbers
  under?: (u: uPlot) => void; // drawn before the lines
  over?: (u: uPlot) => void; // and after them
}

const FONT = '11px ui-sans-serif, system-ui, "Segoe UI", Roboto, sans-serif';

export function Plot(props: PlotProps) {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const now = useRef(props);
  now.current = props;

  useLayoutEffect(() => {
    const { width, height, series, dark, xStepped } = now.current;
    const axis: uPlot.Axis = {
      stroke: colour("dim", dark),
      font: FONT,
      grid: { stroke: colour("grid", dark), width: 1 },
      ticks: { show: false },
    };
    plot.current = new uPlot(
      {
        width,
        height,
        pxAlign: 1,
        padding: [6, RIGHT, 0, 0],
        legend: { show: false },
        cursor: { show: false },
        scales: {
          x: { time: false, range: () => [now.current.domain.from, now.current.domain.to] },
          y: { range: () => [0, now.current.top] },
        },
        axes: [
          {
            ...axis,
            size: 22,
            gap: 4,
            space: 70,
            grid: { show: false },
            ...(xStepped && {
              incrs: [
                1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6,
                5e6, 1e7,
              ],
            }),
            values: (_, splits) =>
              splits.map((split) => now.current.xAxis?.(split) ?? split.toLocaleString("en-US")),
          },
          {
            ...axis,
            size: LEFT,
            gap: 6,
            space: 28,
            values: (_, splits) => splits.map((split) => now.current.axis(split)),
          },
        ],
        series: [{}, ...series],
        hooks: {
          drawClear: [(u) => now.current.under?.(u)],
          draw: [(u) => now.current.over?.(u)],
        },
      },
      now.current.data,
      host.current!,
    );
    return () => {
      plot.current?.destroy();
      plot.current = null;
    };
  }, [props.shape, props.dark]);

  useLayoutEffect(() => {
    const u = plot.current;
    if (u && (u.width !== props.width || u.height !== props.height))
      u.setSize({ width: props.width, height: props.height });
  }, [props.width, props.height, props.shape, props.dark]);

  const drawn = useRef<unknown>(null);
  useLayoutEffect(() => {
    const u = plot.current;
    if (!u) return;
    if (drawn.current !== props.data) u.setData(props.data, true);
    else u.redraw(false, true);
    drawn.current = props.data;
  }, [
    props.data,
    props.domain.from,
    props.domain.to,
    props.top,
    props.under,
    props.over,
    props.shape,
    props.dark,
  ]);

  return <div class="fill" ref={host} aria-hidden="true" />;
}

const MOST_LINES = 60; // of a kind: more would hide what they mark
const LINED: readonly RunEvent["kind"][] = ["checkpoint", "validation", "epoch_start", "compile", "finding"];

// Events as upright lines. `value`: where a step is on this chart's x.
export function drawEvents(
  u: uPlot,
  events: readonly RunEvent[],
  dark: boolean,
  value: (step: number) => number | null,
): void {
  const { ctx, bbox } = u;
  const { min = 0, max = 0 } = u.scales["x"]!;
  ctx.save();
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
  for (const kind of LINED) {
    const places = events
      .filter((event) => event.kind === kind && event.step !== null)
      .map((event) => value(event.step!))
      .filter((at): at is number => at !== null && at >= min! && at <= max!);
    if (places.length > MOST_LINES) continue;
    ctx.strokeStyle = colour(`e-${kind}`, dark);
    for (const at of places) {
      const x = Math.round(u.valToPos(at, "x", true)) + 0.5;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    }
  }
  ctx.restore();
}
