// What the server answers (docs/reference/api.md), as types, and the one function that asks it.
//
// Invariant: a number that was not measured is null here and `-` in every view, never 0.
import { answer, readRecorded } from "./recorded.ts";

export type Maybe = number | null;

export interface Phase {
  measured: boolean;
  applicable: boolean;
  mean_ms: Maybe;
  share: Maybe;
  clock: "host" | "device";
  user: boolean;
  note: string | null;
}

export interface Evidence {
  name: string;
  value: Maybe;
  unit: string;
}

export interface Advice {
  text: string;
  gain: Maybe;
  check: string;
  not_if: string;
}

export type Severity = "info" | "warning" | "critical";

export interface Finding {
  code: string;
  severity: Severity;
  confidence: "certain" | "possible";
  title: string;
  scope: string;
  rank: Maybe;
  node: string | null;
  phase: string | null;
  cause: string | null;
  first_step: Maybe;
  last_step: Maybe;
  share: Maybe;
  cost_ms_per_step: Maybe;
  predicted_saving: Maybe;
  evidence: Evidence[];
  not_measured: string[];
  advice: Advice[];
  ended: boolean;
}

export interface Resource {
  measured: boolean;
  unit: string;
  average: Maybe;
  peak: Maybe;
  limit: Maybe;
  note: string | null;
}

export interface Gauge extends Resource {
  node?: string;
}

export interface Summary {
  schema: number;
  live: boolean;
  run: {
    name: string;
    id: string;
    command: string[];
    exit_code: Maybe;
    state: "live" | "ended";
    started: string | null;
    duration_s: number;
    ranks: number;
    world_size: number;
    nodes: number;
    versions: { stepscope: string; python: string | null; torch: string | null };
  };
  verdict: Finding;
  findings: Finding[];
  steps: {
    measured: boolean;
    count: number;
    warmup: number;
    failed: number;
    profiled: number;
    incomplete: number;
    mean_ms: Maybe;
    median_ms: Maybe;
    p95_ms: Maybe;
    warmup_mean_ms: Maybe;
    exact: boolean;
  };
  phases: Record<string, Phase>;
  parts: Record<string, { phase: string; measured: boolean; mean_ms: Maybe; share: Maybe }>;
  occurrences: Record<string, { count: number; total_ms: number; median_ms: Maybe }>;
  throughput: { measured: boolean; samples_per_s: Maybe; steps_per_s: Maybe; over: string };
  now: { rank: number; node: string | null; phase: string; step: number; since_s: Maybe; alive: boolean }[];
  resources: Record<string, Resource>;
  stepscope: {
    records_written: number;
    records_dropped: number;
    cost_measured: boolean;
    cost_us_per_step: Maybe;
  };
  unobserved: string[];
  notices: string[];
  not_measured: { what: string; why: string }[];
  settings: Record<string, number | string | boolean>;
  files: Record<string, string>;
  next: string;
}

export interface RunRow {
  key: string;
  name: string;
  folder: string;
  state: "live" | "ended";
  started: string | null;
  duration_s: Maybe;
  ranks: Maybe;
  steps: Maybe;
  mean_ms: Maybe;
  samples_per_s: Maybe;
  verdict: { code: string; severity: Severity; title: string } | null;
  phases: Record<string, Maybe>;
}

// Columns over blocks of steps; a block of one is a raw step.
export interface Series {
  rank: Maybe;
  first: Maybe;
  last: Maybe;
  raw_from: Maybe;
  warmup_until: Maybe;
  first_step: number[];
  last_step: number[];
  count: number[];
  time_s: Maybe[];
  total_ms: Maybe[];
  total_min_ms: Maybe[];
  total_max_ms: Maybe[];
  phases: { name: string; user: boolean; ms: Maybe[] }[];
}

export interface RankRow {
  rank: Maybe;
  node: string | null;
  ranks: number;
  state: "live" | "ended" | "gone";
  step: Maybe;
  total_ms: Maybe;
  own_ms: Maybe;
  late_ms: Maybe;
  phases: Record<string, Maybe>;
  memory_bytes: Maybe;
  cpu_cores: Maybe;
  trend: Maybe[];
  doing: { phase: string; since_s: Maybe } | null;
}

export interface Ranks {
  by: "rank" | "node";
  total: number;
  of: number;
  window_steps: Maybe;
  rows: RankRow[];
}

export interface Heatmap {
  value: string;
  unit: string;
  by: "rank" | "node";
  rows: { label: string; rank: Maybe; node: string | null; ranks: number }[];
  of: number;
  first_step: number[];
  last_step: number[];
  values: Maybe[][];
  max: Maybe;
}

export interface ResourceSeries {
  time_s: number[];
  series: { name: string; unit: string; rank: Maybe; node: string | null; values: Maybe[] }[];
  nodes: ({ node: string; cores_usable: Maybe; memory_limit_bytes: Maybe } & Record<string, unknown>)[];
}

export interface RunEvent {
  kind: "checkpoint" | "validation" | "epoch_start" | "compile" | "profiler" | "gc" | "finding";
  rank: Maybe;
  step: Maybe;
  last_step: Maybe;
  time_s: Maybe;
  duration_ms: Maybe;
  text: string;
  severity: Severity | null;
  code: string | null;
  open: boolean | null;
}

export type Frame =
  | {
      type: "tick";
      state: "live" | "ended" | "paused";
      step: Maybe;
      age_s: Maybe;
      duration_s: Maybe;
      series?: Series & { gap?: boolean };
    }
  | { type: "summary"; summary: Summary }
  | { type: "end" };

export class ApiError extends Error {
  readonly status: number; // 0: no answer at all
  readonly hint: string;
  constructor(status: number, message: string, hint = "") {
    super(message);
    this.status = status;
    this.hint = hint;
  }
}

export type Query = Record<string, string | number | boolean | null | undefined>;

export function path(base: string, query: Query = {}): string {
  const words = Object.entries(query)
    .filter(([, value]) => value !== null && value !== undefined && value !== "")
    .map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`);
  return words.length > 0 ? `${base}?${words.join("&")}` : base;
}

export const runPath = (key: string, what: string) => `/v1/runs/${encodeURIComponent(key)}/${what}`;

const recorded = typeof document === "undefined" ? null : readRecorded();
export const isRecorded = recorded !== null; // a file, and no server

// Throws ApiError, or the signal's AbortError.
export async function get<T>(address: string, signal?: AbortSignal): Promise<T> {
  if (recorded) {
    const found = answer(recorded, address);
    if (found === null) throw new ApiError(404, "this is not in the file");
    return found as T;
  }
  let reply: Response;
  try {
    reply = await fetch(address, {
      credentials: "same-origin",
      cache: "no-store",
      ...(signal && { signal }),
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, "the server does not answer");
  }
  if (reply.ok) {
    try {
      return (await reply.json()) as T;
    } catch {
      throw new ApiError(reply.status, "the server's answer is not JSON");
    }
  }
  const body = (await reply.json().catch(() => ({}))) as { error?: string; hint?: string };
  throw new ApiError(reply.status, body.error ?? `the server answered ${reply.status}`, body.hint ?? "");
}

// What `stepscope compare A B --json` says, as far as it is drawn.
export interface Change {
  change_ms: Maybe;
  low_ms: Maybe;
  high_ms: Maybe;
  real: boolean;
}
export interface RankChange {
  rank: number;
  node: string | null;
  own: Change; // of its step without waiting for others
  phase: string | null; // whose change is the largest
  phase_change_ms: Maybe;
}
export interface Difference {
  verdict: { code: "SAME" | "SLOWER" | "FASTER"; title: string; from: string | null };
  level: number; // of the intervals
  step: Change;
  phases: Record<string, Change>;
  ranks: RankChange[];
  from_ranks: number[];
  remarks: { text: string; obstacle: "work" | "too_few" | "remark" }[];
}
