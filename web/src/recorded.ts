// The page as a file (`stepscope export --to html`): what the API would answer is beside it, and is picked from there.
//
// Thread safety: pure functions; what is recorded stays as it is. Invariants: a part of the steps is cut out of the
// blocks that were recorded, none is split; what was not recorded is null, never made up.
import type {
  Heatmap,
  Maybe,
  RankRow,
  Ranks,
  ResourceSeries,
  RunEvent,
  RunRow,
  Series,
  Summary,
} from "./api.ts";

// As src/exporter/html.cpp writes it.
export interface Recorded {
  summary: Summary;
  series: (Series | null)[]; // the job's, then of some ranks
  ranks: (Ranks | null)[]; // in pieces, by rank and by node
  heatmaps: (Heatmap | null)[]; // one a value and kind of row
  resources: ResourceSeries | null;
  events: { events: RunEvent[] } | null;
}

export const KEY = "run";

export function readRecorded(): Recorded | null {
  const text = document.getElementById("stepscope-run")?.textContent;
  return text ? (JSON.parse(text) as Recorded) : null;
}

// What the API would say to this path; null: it was not recorded.
export function answer(recorded: Recorded, address: string): unknown {
  const [path = "", query = ""] = address.split("?", 2);
  const words = new URLSearchParams(query);
  if (path === "/v1/runs") return { runs: [row(recorded.summary)] };
  const what = path.startsWith(`/v1/runs/${KEY}/`) ? path.slice(`/v1/runs/${KEY}/`.length) : "";
  switch (what) {
    case "summary":
      return recorded.summary;
    case "series":
      return seriesOf(recorded, number(words, "rank"), span(words));
    case "ranks":
      return ranksOf(recorded, words);
    case "heatmap":
      return heatmapOf(recorded, words.get("value") ?? "late", words.get("by") ?? "rank", span(words));
    case "resources":
      return recorded.resources;
    case "events":
      return recorded.events;
    default:
      return null;
  }
}

interface Span {
  from: number;
  to: number;
}

function number(words: URLSearchParams, name: string): Maybe {
  const word = words.get(name);
  return word === null || word === "" ? null : Number(word);
}

const span = (words: URLSearchParams): Span => ({
  from: number(words, "from") ?? -Infinity,
  to: number(words, "to") ?? Infinity,
});

// Where in columns of blocks those lie that have a step in the span.
function within(first: readonly number[], last: readonly number[], { from, to }: Span): number[] {
  return first.map((_, at) => at).filter((at) => last[at]! >= from && first[at]! <= to);
}

function seriesOf(recorded: Recorded, rank: Maybe, steps: Span): Series | null {
  const series = recorded.series.find((it) => it?.rank === rank);
  if (!series) return null;
  const at = within(series.first_step, series.last_step, steps);
  const cut = <T>(values: readonly T[]): T[] => at.map((it) => values[it]!);
  return {
    ...series,
    first_step: cut(series.first_step),
    last_step: cut(series.last_step),
    count: cut(series.count),
    time_s: cut(series.time_s),
    total_ms: cut(series.total_ms),
    total_min_ms: cut(series.total_min_ms),
    total_max_ms: cut(series.total_max_ms),
    phases: series.phases.map((phase) => ({ ...phase, ms: cut(phase.ms) })),
  };
}

function heatmapOf(recorded: Recorded, value: string, by: string, steps: Span): Heatmap | null {
  const map = recorded.heatmaps.find((it) => it?.value === value && it.by === by);
  if (!map) return null;
  const at = within(map.first_step, map.last_step, steps);
  const values = map.values.map((row) => at.map((it) => row[it] ?? null));
  return {
    ...map,
    first_step: at.map((it) => map.first_step[it]!),
    last_step: at.map((it) => map.last_step[it]!),
    values,
  };
}

function ranksOf(recorded: Recorded, words: URLSearchParams): Ranks | null {
  const pieces = recorded.ranks.filter((it): it is Ranks => it?.by === (words.get("by") ?? "rank"));
  if (!pieces[0]) return null;
  const filter = (words.get("filter") ?? "").toLowerCase();
  const rows = pieces
    .flatMap((piece) => piece.rows)
    .filter((it) => String(it.rank) === filter || (it.node ?? "").toLowerCase().includes(filter));
  sort(rows, words.get("sort") ?? "late_ms", words.get("order") === "asc");
  const offset = number(words, "offset") ?? 0;
  return {
    ...pieces[0],
    total: rows.length,
    rows: rows.slice(offset, offset + (number(words, "limit") ?? rows.length)),
  };
}

// As report::ranks_view: what is not measured comes last in both orders, ties stay in theirs.
function sort(rows: RankRow[], column: string, ascending: boolean): void {
  const turn = ascending ? 1 : -1;
  const value = (it: RankRow): string | Maybe =>
    column in it
      ? ((it as unknown as Record<string, string | Maybe>)[column] ?? null)
      : (it.phases[column] ?? null);
  rows.sort((a, b) => {
    const [left, right] = [value(a), value(b)];
    if (left === null || right === null) return Number(left === null) - Number(right === null);
    return left < right ? -turn : left > right ? turn : 0;
  });
}

function row({ live, run, steps, throughput, verdict, phases }: Summary): RunRow {
  return {
    key: KEY,
    name: run.name,
    folder: "",
    state: live ? "live" : "ended",
    started: run.started,
    duration_s: run.duration_s,
    ranks: run.ranks,
    steps: steps.count,
    mean_ms: steps.mean_ms,
    samples_per_s: throughput.samples_per_s,
    verdict,
    phases: Object.fromEntries(Object.entries(phases).map(([name, phase]) => [name, phase.share])),
  };
}
