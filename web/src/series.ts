// Columns of steps: the newest joined to what is there, and the way between steps, places and times.
//
// Thread safety: pure functions; what they are given stays as it is. Invariant: first_step rises.
import type { Maybe, Series } from "./api.ts";

const NUMBERS = ["first_step", "last_step", "count"] as const;
const AMOUNTS = ["time_s", "total_ms", "total_min_ms", "total_max_ms"] as const;

// The newest steps joined to the end. Steps that are there already are not taken twice. A phase that only one of both
// has is null in the other: not known there, not zero.
export function append(series: Series, more: Series): Series {
  const end = series.last_step.at(-1) ?? -Infinity;
  let skip = 0;
  while (skip < more.first_step.length && more.first_step[skip]! <= end) skip += 1;
  const added = more.first_step.length - skip;
  if (added === 0) return series;
  const joined: Series = {
    ...series,
    first: series.first ?? more.first,
    last: more.last ?? more.last_step.at(-1)!,
  };
  joined.warmup_until = series.warmup_until ?? more.warmup_until;
  for (const name of NUMBERS) joined[name] = [...series[name], ...more[name].slice(skip)];
  for (const name of AMOUNTS) joined[name] = [...series[name], ...more[name].slice(skip)];
  const unknown = (length: number): Maybe[] => new Array<Maybe>(length).fill(null);
  const names = new Map([...series.phases, ...more.phases].map((phase) => [phase.name, phase.user]));
  joined.phases = [...names].map(([name, user]) => {
    const before = series.phases.find((phase) => phase.name === name)?.ms ?? unknown(series.count.length);
    const after = more.phases.find((phase) => phase.name === name)?.ms.slice(skip) ?? unknown(added);
    return { name, user, ms: [...before, ...after] };
  });
  return joined;
}

// Without what ended before `from`: what a window that follows the newest steps leaves behind.
export function trim(series: Series, from: number): Series {
  let skip = 0;
  while (skip < series.last_step.length && series.last_step[skip]! < from) skip += 1;
  if (skip === 0) return series;
  const cut: Series = { ...series };
  for (const name of NUMBERS) cut[name] = series[name].slice(skip);
  for (const name of AMOUNTS) cut[name] = series[name].slice(skip);
  cut.phases = series.phases.map((phase) => ({ ...phase, ms: phase.ms.slice(skip) }));
  return cut;
}

// Index of the block that holds the step, or of the nearest; -1 without any.
export function blockOf(first: readonly number[], step: number): number {
  let low = 0;
  let high = first.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (first[middle]! <= step) low = middle;
    else high = middle - 1;
  }
  return high < 0 ? -1 : low;
}

// Seconds since the run's first step began at the end of this step, linear inside a block; null where no block says.
export function timeOf(series: Series, step: number): Maybe {
  const at = blockOf(series.first_step, step);
  if (at < 0) return null;
  const end = series.time_s[at] ?? null;
  if (end === null) return null;
  const begin = at > 0 ? (series.time_s[at - 1] ?? null) : Math.max(0, end - length(series, at));
  if (begin === null) return end;
  const whole = series.last_step[at]! + 1 - series.first_step[at]!;
  return begin + ((end - begin) * Math.min(Math.max(step - series.first_step[at]!, 0), whole)) / whole;
}

// The step that ran at this time, as a fraction; null without any.
export function stepAt(series: Series, time_s: number): Maybe {
  let low = 0;
  let high = series.time_s.length - 1;
  if (high < 0) return null;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((series.time_s[middle] ?? Infinity) >= time_s) high = middle;
    else low = middle + 1;
  }
  const end = series.time_s[low];
  if (end === null || end === undefined) return null;
  const begin = low > 0 ? (series.time_s[low - 1] ?? end) : Math.max(0, end - length(series, low));
  const share = end > begin ? Math.min(Math.max((time_s - begin) / (end - begin), 0), 1) : 0;
  return series.first_step[low]! + share * (series.last_step[low]! + 1 - series.first_step[low]!);
}

const length = (series: Series, at: number) => ((series.total_ms[at] ?? 0) * series.count[at]!) / 1000;
