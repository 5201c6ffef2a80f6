// The one state of the page, as plain values. socket -> store -> views: only control.ts changes it, views read it.
//
// Invariant: what the address carries is in `view` and nowhere else (url.ts).
import type {
  Difference,
  Finding,
  Heatmap,
  Maybe,
  RankRow,
  ResourceSeries,
  RunEvent,
  RunRow,
  Series,
  Summary,
} from "./api.ts";

export type Route =
  { page: "runs" } | { page: "run"; key: string } | { page: "compare"; a: string; b: string };

// Which steps are shown: all there are, the newest so many, or from one to another.
export type Range =
  { kind: "all" } | { kind: "last"; steps: number } | { kind: "span"; from: number; to: number };

export type Order = "asc" | "desc";

export interface View {
  route: Route;
  range: Range;
  rank: Maybe; // of the steps shown; null: the job
  phase: string | null; // shown alone
  heat: string; // late, total, or a phase
  by: "rank" | "node";
  sort: string;
  order: Order;
  filter: string;
  full: boolean; // the axis of times up to the longest step, outliers too
}

export type Theme = "auto" | "light" | "dark";

export type Link =
  | { state: "idle" } // an ended run needs none
  | { state: "connecting" }
  | { state: "open" }
  | { state: "lost"; retry_at: number; since: number };

// Rows of the table by their place; what was not scrolled to is not there.
export interface RankTable {
  query: string;
  total: number;
  of: number;
  window_steps: Maybe;
  rows: ReadonlyMap<number, RankRow>;
}

export interface Newest {
  state: "live" | "ended" | "paused";
  step: Maybe;
  age_s: Maybe;
  duration_s: Maybe;
  at: number; // performance.now() when the server said so
}

export interface Problem {
  text: string;
  hint: string;
  status: number;
}

export interface RunData {
  key: string;
  summary: Summary | null;
  series: Series | null;
  series_of: string; // the query that gave it: range and rank
  ranks: RankTable | null;
  heatmap: Heatmap | null;
  resources: ResourceSeries | null;
  events: RunEvent[] | null;
  newest: Newest | null;
  ended: boolean;
  problem: Problem | null;
}

export interface Compared {
  a: Summary | null;
  b: Summary | null;
  result: Difference | null;
  problem: Problem | null;
}

export interface State {
  view: View;
  back: Range[]; // ranges zoomed in from, the newest last
  theme: Theme;
  dark: boolean; // what the theme comes to
  help: boolean;
  paused: boolean;
  missed: boolean; // something came while paused
  cursor: Maybe; // the step under the crosshair, as a fraction
  row: number; // of the rank table, chosen by key
  runs: RunRow[] | null;
  runs_problem: Problem | null;
  run: RunData | null;
  compared: Compared | null;
  chosen: string[]; // runs to compare
  link: Link;
  now: number; // performance.now(), once a second
  recorded: boolean; // a file and no server: nothing becomes newer
  said: string; // for the screen reader and the corner: what a key or a click did
}

export const VIEW: Omit<View, "route"> = {
  range: { kind: "all" },
  rank: null,
  phase: null,
  heat: "late",
  by: "rank",
  sort: "late_ms",
  order: "desc",
  filter: "",
  full: false,
};

export const newRun = (key: string): RunData => ({
  key,
  summary: null,
  series: null,
  series_of: "",
  ranks: null,
  heatmap: null,
  resources: null,
  events: null,
  newest: null,
  ended: false,
  problem: null,
});

// The steps that the charts span: [first, end), or null before there are any.
export function shown(state: State): { from: number; to: number } | null {
  const series = state.run?.series;
  if (!series || series.first_step.length === 0) return null;
  const { range } = state.view;
  if (range.kind === "span") return { from: range.from, to: range.to + 1 };
  const to = series.last_step.at(-1)! + 1;
  return {
    from: range.kind === "last" ? Math.max(series.first_step[0]!, to - range.steps) : series.first_step[0]!,
    to,
  };
}

export type Liveness =
  | {
      word: "loading" | "live" | "paused" | "ended" | "no data yet" | "recording off" | "snapshot";
      detail: string;
    }
  | { word: "stale" | "disconnected"; detail: string; for_s: number };

const LEAST_STALE_S = 3;
const STALE_STEPS = 5; // a step that takes five times the mean one

// Seconds since the newest step ended, by the server's word and the time since then.
export function age(run: RunData, now: number): Maybe {
  const { newest } = run;
  return newest?.age_s == null ? null : newest.age_s + Math.max(0, now - newest.at) / 1000;
}

// The one word for how fresh the page is.
export function liveness(state: State): Liveness {
  const { run, link, now } = state;
  if (!run) return { word: "loading", detail: "" };
  if (state.recorded && run.summary?.live) return { word: "snapshot", detail: "of a run that went on" };
  if (run.ended) return { word: "ended", detail: "" };
  if (link.state === "lost") {
    return {
      word: "disconnected",
      detail: `tries again in ${Math.max(0, Math.ceil((link.retry_at - now) / 1000))} s`,
      for_s: (now - link.since) / 1000,
    };
  }
  if (!run.summary) return { word: "loading", detail: "" };
  if (state.paused) return { word: "paused", detail: state.missed ? "newer steps wait" : "" };
  if (run.newest?.state === "paused") return { word: "recording off", detail: "" };
  if (run.summary.steps.count === 0 && (run.newest?.step ?? null) === null)
    return { word: "no data yet", detail: "" };
  const age_s = age(run, now);
  const limit_s = Math.max(LEAST_STALE_S, (STALE_STEPS * (run.summary.steps.mean_ms ?? 0)) / 1000);
  if (age_s !== null && age_s > limit_s) return { word: "stale", detail: "", for_s: age_s };
  return { word: "live", detail: "" };
}

export const isLive = (state: State) => state.run !== null && !state.run.ended;

export const certain = (finding: Finding) =>
  finding.confidence === "possible" ? `${finding.severity}, possible` : finding.severity;
