// The keyboard: one table that both dispatches and explains (view/help.tsx).
//
// Invariant: no key is taken from a text field, from the browser (Ctrl, Alt, Meta) or from a focused control's own use.
import { act } from "./control.ts";
import { isLive, shown, type State } from "./state.ts";
import { blockOf } from "./series.ts";

export interface Key {
  keys: readonly string[]; // KeyboardEvent.key
  shown: string;
  does: string;
  on?: "run"; // only where a run is shown
  run(state: State): void;
}

const LAST_STEPS = 300;

function heats(state: State): string[] {
  const phases = Object.entries(state.run?.summary?.phases ?? {});
  return ["late", "total", ...phases.filter(([, phase]) => (phase.mean_ms ?? 0) > 0).map(([name]) => name)];
}

function turn<T>(list: readonly T[], now: T, by: number): T {
  return list[(list.indexOf(now) + by + list.length) % list.length] ?? now;
}

// Zooms around the crosshair, else the middle, and stays inside what there is.
function zoom(state: State, factor: number): void {
  const span = shown(state);
  const series = state.run?.series;
  if (!span || !series) return;
  const around = state.cursor ?? (span.from + span.to) / 2;
  const from = around - (around - span.from) * factor;
  const to = around + (span.to - around) * factor;
  if (to - from < 2) return;
  const [first, end] = [series.first ?? 0, (series.last ?? 0) + 1];
  if (from <= first && to >= end) act().range({ kind: "all" });
  else act().zoom(Math.max(first, from), Math.min(end, to));
}

function move(state: State, share: number): void {
  const span = shown(state);
  const series = state.run?.series;
  if (!span || !series || state.view.range.kind === "all") return;
  const width = span.to - span.from;
  const [first, end] = [series.first ?? 0, (series.last ?? 0) + 1];
  const from = Math.round(Math.min(Math.max(span.from + width * share, first), Math.max(first, end - width)));
  act().look({ range: { kind: "span", from, to: from + width - 1 } });
}

function crosshair(state: State, by: number): void {
  const span = shown(state);
  const first = state.run?.series?.first_step;
  if (!span || !first || first.length === 0) return;
  const at =
    state.cursor === null
      ? by > 0
        ? blockOf(first, span.from) - 1
        : blockOf(first, span.to)
      : blockOf(first, state.cursor);
  const next = Math.min(Math.max(at + by, blockOf(first, span.from)), blockOf(first, span.to - 1));
  act().cursor(first[next]! + 0.5);
}

function row(state: State, by: number): void {
  const total = state.run?.ranks?.total ?? 0;
  if (total > 0) act().set({ row: Math.min(Math.max(state.row + by, 0), total - 1) });
}

function openRow(state: State): void {
  const chosen = state.run?.ranks?.rows.get(state.row);
  if (chosen?.rank != null) act().look({ rank: state.view.rank === chosen.rank ? null : chosen.rank });
}

export const KEYS: readonly Key[] = [
  { keys: ["?"], shown: "?", does: "this help", run: (state) => act().set({ help: !state.help }) },
  {
    keys: ["Escape"],
    shown: "Esc",
    does: "close the help, or leave the rank or phase shown alone",
    run: (state) => {
      if (state.help) act().set({ help: false });
      else act().look({ rank: null, phase: null });
    },
  },
  {
    keys: [" ", "p"],
    shown: "space p",
    does: "pause, and go on",
    on: "run",
    run: (state) => isLive(state) && act().pause(!state.paused),
  },
  { keys: ["a"], shown: "a", does: "all steps", on: "run", run: () => act().range({ kind: "all" }) },
  {
    keys: ["f"],
    shown: "f",
    does: `follow the newest ${LAST_STEPS} steps`,
    on: "run",
    run: () => {
      act().pause(false);
      act().range({ kind: "last", steps: LAST_STEPS });
    },
  },
  { keys: ["+", "="], shown: "+", does: "zoom in", on: "run", run: (state) => zoom(state, 0.5) },
  { keys: ["-"], shown: "-", does: "zoom out", on: "run", run: (state) => zoom(state, 2) },
  {
    keys: ["0", "Backspace"],
    shown: "0",
    does: "zoom back, as a double click",
    on: "run",
    run: () => act().zoomBack(),
  },
  { keys: ["ArrowLeft"], shown: "←", does: "earlier", on: "run", run: (state) => move(state, -0.25) },
  { keys: ["ArrowRight"], shown: "→", does: "later", on: "run", run: (state) => move(state, 0.25) },
  {
    keys: [","],
    shown: ",",
    does: "crosshair one step back",
    on: "run",
    run: (state) => crosshair(state, -1),
  },
  { keys: ["."], shown: ".", does: "crosshair one step on", on: "run", run: (state) => crosshair(state, 1) },
  {
    keys: ["y"],
    shown: "y",
    does: "axis up to the longest step, or to the usual ones",
    on: "run",
    run: (state) => act().look({ full: !state.view.full }),
  },
  {
    keys: ["h"],
    shown: "h H",
    does: "heat map of the next or previous value",
    on: "run",
    run: (state) => act().look({ heat: turn(heats(state), state.view.heat, 1) }),
  },
  {
    keys: ["H"],
    shown: "",
    does: "",
    on: "run",
    run: (state) => act().look({ heat: turn(heats(state), state.view.heat, -1) }),
  },
  {
    keys: ["n"],
    shown: "n",
    does: "ranks, or nodes",
    on: "run",
    run: (state) => act().look({ by: state.view.by === "rank" ? "node" : "rank" }),
  },
  {
    keys: ["j"],
    shown: "j k",
    does: "next or previous row of the ranks",
    on: "run",
    run: (state) => row(state, 1),
  },
  { keys: ["k"], shown: "", does: "", on: "run", run: (state) => row(state, -1) },
  {
    keys: ["Enter"],
    shown: "Enter",
    does: "steps of the chosen rank alone, or of the job again",
    on: "run",
    run: openRow,
  },
  {
    keys: ["s"],
    shown: "s",
    does: "the slowest rank alone: the first row",
    on: "run",
    run: (state) => {
      const worst = state.run?.ranks?.rows.get(0)?.rank;
      if (worst != null) act().look({ rank: worst });
    },
  },
  {
    keys: ["/"],
    shown: "/",
    does: "filter",
    run: () => document.querySelector<HTMLInputElement>("input[type=search]")?.focus(),
  },
  {
    keys: ["c"],
    shown: "c",
    does: "copy the link to exactly this view",
    run: () => copyLink(),
  },
  { keys: ["r"], shown: "r", does: "list of runs", run: () => act().look({ route: { page: "runs" } }) },
  {
    keys: ["t"],
    shown: "t",
    does: "light, dark, or as the system",
    run: (state) => act().theme(turn(["auto", "light", "dark"] as const, state.theme, 1)),
  },
];

export function copyLink(): void {
  const done = () => act().say("link copied");
  const failed = () => act().say("the browser refused: copy the address bar");
  if (navigator.clipboard) navigator.clipboard.writeText(location.href).then(done, failed);
  else failed();
}

// What a focused control does with a key itself.
function keepsKey(target: EventTarget | null, key: string): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.matches("input, textarea, select") || target.isContentEditable) return key !== "Escape";
  return (key === " " || key === "Enter") && target.closest("button, a, summary, [role=button]") !== null;
}

export function dispatch(event: KeyboardEvent, state: State): void {
  if (event.ctrlKey || event.metaKey || event.altKey || keepsKey(event.target, event.key)) return;
  if (event.key === "Escape" && event.target instanceof HTMLInputElement) return event.target.blur();
  const key = KEYS.find((it) => it.keys.includes(event.key));
  if (!key || (key.on === "run" && !state.run)) return;
  event.preventDefault();
  key.run(state);
}
