// Events by kind along the steps: one row a kind, a mark each, a bar where it lasted.
import { useCallback } from "preact/hooks";
import type { RunEvent } from "../api.ts";
import { grouped } from "../format.ts";
import { Canvas, Frame, LEFT, RIGHT, type Domain } from "./frame.tsx";
import { colour } from "./theme.ts";

export const KINDS: readonly RunEvent["kind"][] = [
  "finding",
  "checkpoint",
  "validation",
  "epoch_start",
  "compile",
  "profiler",
  "gc",
];
export const KIND_NAMES: Record<RunEvent["kind"], string> = {
  finding: "findings",
  checkpoint: "checkpoint",
  validation: "validation",
  epoch_start: "epoch",
  compile: "compile",
  profiler: "profiler",
  gc: "gc",
};
const ROW_PX = 16;

const NAMES_SHORT: Partial<Record<RunEvent["kind"], string>> = { checkpoint: "chkpoint" };

export function Lane({
  events,
  domain,
  dark,
}: {
  events: readonly RunEvent[];
  domain: Domain;
  dark: boolean;
}) {
  const kinds = KINDS.filter((kind) => events.some((event) => event.kind === kind && event.step !== null));
  const height = kinds.length * ROW_PX + 2;
  const names = kinds.join();
  const draw = useCallback(
    (on: CanvasRenderingContext2D) => {
      const plot = Math.max(1, on.canvas.clientWidth - LEFT - RIGHT);
      const x = (step: number) => LEFT + ((step - domain.from) / (domain.to - domain.from)) * plot;
      on.font = '11px ui-sans-serif, system-ui, "Segoe UI", Roboto, sans-serif';
      on.textBaseline = "middle";
      on.textAlign = "right";
      kinds.forEach((kind, row) => {
        const y = row * ROW_PX + ROW_PX / 2 + 1;
        on.fillStyle = colour("dim", dark);
        on.fillText(NAMES_SHORT[kind] ?? KIND_NAMES[kind], LEFT - 6, y);
        on.fillStyle = colour("grid", dark);
        on.fillRect(LEFT, y - 0.5, plot, 1);
      });
      on.save();
      on.beginPath();
      on.rect(LEFT - 1, 0, plot + 2, height);
      on.clip();
      for (const event of events) {
        const row = kinds.indexOf(event.kind);
        if (row < 0 || event.step === null) continue;
        const y = row * ROW_PX + ROW_PX / 2 + 1;
        const from = x(event.step);
        const to = event.last_step === null ? from : x(event.last_step + 1);
        if (to < LEFT || from > LEFT + plot) continue;
        on.fillStyle = colour(
          event.kind === "finding" ? `s-${event.severity ?? "info"}` : `e-${event.kind}`,
          dark,
        );
        if (to - from > 6) on.fillRect(from, y - 3, to - from, 6);
        else on.fillRect(from - 1, y - 5, 2.5, 10);
      }
      on.restore();
    },
    [events, names, domain.from, domain.to, dark, height],
  );
  if (kinds.length === 0) return null;
  const label = `Events along the steps: ${kinds
    .map((kind) => `${grouped(events.filter((event) => event.kind === kind).length)} ${KIND_NAMES[kind]}`)
    .join(", ")}. The list below has each.`;
  return <Frame {...{ label, height, domain }}>{(width) => <Canvas {...{ width, height, draw }} />}</Frame>;
}
