// Ranks by steps: one pixel row a rank, colour the milliseconds. What is not known is hatched, so that it differs from
// zero by more than its colour.
import { useCallback, useMemo, useState } from "preact/hooks";
import type { Heatmap, Maybe } from "../api.ts";
import { duration, grouped, safe, steps as stepsText } from "../format.ts";
import { useSelect } from "../store.ts";
import { blockOf } from "../series.ts";
import { Canvas, Frame, LEFT, RIGHT, type Domain } from "./frame.tsx";
import { colour, ramp } from "./theme.ts";

const USUAL = 0.995; // the brightest colour is for what so many of the values stay below
const MOST_HEIGHT = 400;
const LABEL_PX = 12;

// The value of the brightest colour: one outlier must not make everything else dark.
export function brightest(values: readonly (readonly Maybe[])[]): number {
  const known = values.flat().filter((value): value is number => value !== null && value > 0);
  if (known.length === 0) return 0;
  known.sort((a, b) => a - b);
  return known[Math.floor((known.length - 1) * USUAL)]!;
}

interface Props {
  map: Heatmap;
  domain: Domain;
  dark: boolean;
  chosen: Maybe; // rank
  onPick: (rank: Maybe, node: string | null) => void;
}

export function HeatChart({ map, domain, dark, chosen, onPick }: Props) {
  const rows = map.rows.length;
  const height = Math.max(24, Math.min(MOST_HEIGHT, rows * (rows <= 16 ? 18 : rows <= 32 ? 12 : 6)));
  const row_px = height / Math.max(1, rows);
  const most = useMemo(() => brightest(map.values), [map]);
  const [row, setRow] = useState<number | null>(null);

  const draw = useCallback(
    (on: CanvasRenderingContext2D) => {
      const width = on.canvas.clientWidth;
      const plot = Math.max(1, width - LEFT - RIGHT);
      const colours = ramp(dark);
      const scale = window.devicePixelRatio || 1;
      const w = Math.max(1, Math.round(plot * scale));
      const image = new ImageData(w, Math.max(1, rows));
      // The block of each pixel column, once for all rows.
      const blocks = new Int32Array(w).fill(-1);
      for (let x = 0; x < w; x += 1) {
        const step = domain.from + ((x + 0.5) / w) * (domain.to - domain.from);
        const at = blockOf(map.first_step, step);
        if (at >= 0 && step >= map.first_step[at]! && step < map.last_step[at]! + 1) blocks[x] = at;
      }
      for (let y = 0; y < rows; y += 1) {
        const values = map.values[y]!;
        for (let x = 0; x < w; x += 1) {
          const value = blocks[x]! >= 0 ? values[blocks[x]!] : undefined;
          if (value === null || value === undefined) continue; // clear: the hatching shows
          const shade = most > 0 ? Math.min(255, Math.max(0, Math.round((value / most) * 255))) : 0;
          const to = (y * w + x) * 4;
          image.data[to] = colours[shade * 3]!;
          image.data[to + 1] = colours[shade * 3 + 1]!;
          image.data[to + 2] = colours[shade * 3 + 2]!;
          image.data[to + 3] = 255;
        }
      }
      hatch(on, LEFT, 0, plot, height, dark);
      const small = new OffscreenCanvas(w, Math.max(1, rows));
      small.getContext("2d")!.putImageData(image, 0, 0);
      on.imageSmoothingEnabled = false;
      on.drawImage(small, LEFT, 0, plot, height);
      on.fillStyle = colour("panel", dark); // a line between rows
      if (row_px >= 10) for (let y = 1; y < rows; y += 1) on.fillRect(LEFT, y * row_px - 0.5, plot, 1);
      on.font = '11px ui-sans-serif, system-ui, "Segoe UI", Roboto, sans-serif';
      on.textAlign = "right";
      on.textBaseline = "middle";
      const every = Math.ceil(LABEL_PX / row_px);
      for (let y = 0; y < rows; y += every) {
        const { label, rank } = map.rows[y]!;
        on.fillStyle = colour(rank !== null && rank === chosen ? "ink" : "dim", dark);
        on.fillText(cut(on, safe(label), LEFT - 8), LEFT - 6, (y + 0.5) * row_px);
      }
      if (chosen !== null) {
        const at = map.rows.findIndex((it) => it.rank === chosen);
        on.strokeStyle = colour("ink", dark);
        on.lineWidth = 1;
        if (at >= 0) on.strokeRect(LEFT + 0.5, at * row_px + 0.5, plot - 1, row_px - 1);
      }
    },
    [map, domain.from, domain.to, dark, chosen, height, most],
  );

  const at = (y: number) => Math.min(rows - 1, Math.max(0, Math.floor(y / row_px)));
  const what = map.value === "late" ? "lateness" : map.value === "total" ? "step time" : map.value;
  const label =
    `Heat map: ${what} of ${rows} of ${map.of} ${map.by === "node" ? "nodes" : "ranks"} over ` +
    `${stepsText(domain.from, domain.to - 1)}, worst first, up to ${duration(map.max)}. The table below has the numbers.`;
  return (
    <>
      <Frame
        {...{ label, height, domain }}
        onHover={(y) => setRow(y === null ? null : at(y))}
        onPick={(y) => map.rows[at(y)] && onPick(map.rows[at(y)]!.rank, map.rows[at(y)]!.node)}
      >
        {(width) => <Canvas {...{ width, height, draw }} />}
      </Frame>
      <HeatReadout map={map} row={row} most={most} />
    </>
  );
}

function HeatReadout({ map, row, most }: { map: Heatmap; row: number | null; most: number }) {
  const block = useSelect((state) =>
    state.cursor === null || row === null ? -1 : blockOf(map.first_step, state.cursor),
  );
  const value = row === null || block < 0 ? null : (map.values[row]?.[block] ?? null);
  const of = row === null ? undefined : map.rows[row];
  return (
    <p class="under heatkey">
      <span class="scale" aria-label={`colours from 0 to ${duration(most)}`}>
        0 <span class="ramp" /> {most > 0 && most < (map.max ?? 0) ? "≥ " : ""}
        {duration(most)}
      </span>
      <span class="scale">
        <span class="hatch" /> not known
      </span>
      {of && block >= 0 && (
        <span class="readout">
          {safe(of.label)}
          {of.node && map.by === "rank" ? ` on ${safe(of.node)}` : ""},{" "}
          {stepsText(map.first_step[block]!, map.last_step[block]!)}: <b>{duration(value)}</b>
        </span>
      )}
      {map.of > map.rows.length && (
        <span class="count">
          worst {grouped(map.rows.length)} of {grouped(map.of)} {map.by === "node" ? "nodes" : "ranks"}
        </span>
      )}
    </p>
  );
}

function hatch(
  on: CanvasRenderingContext2D,
  x: number,
  y: number,
  width: number,
  height: number,
  dark: boolean,
): void {
  on.save();
  on.beginPath();
  on.rect(x, y, width, height);
  on.clip();
  on.fillStyle = colour("page", dark);
  on.fillRect(x, y, width, height);
  on.strokeStyle = colour("grid", dark);
  on.lineWidth = 1;
  on.beginPath();
  for (let at = -height; at < width; at += 6) {
    on.moveTo(x + at, y + height);
    on.lineTo(x + at + height, y);
  }
  on.stroke();
  on.restore();
}

function cut(on: CanvasRenderingContext2D, text: string, px: number): string {
  if (on.measureText(text).width <= px) return text;
  let length = text.length;
  while (length > 1 && on.measureText(`…${text.slice(-length)}`).width > px) length -= 1;
  return `…${text.slice(-length)}`; // names of hosts differ at their ends
}
