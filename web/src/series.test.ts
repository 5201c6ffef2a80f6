import assert from "node:assert/strict";
import { test } from "node:test";
import type { Series } from "./api.ts";
import { append, blockOf, stepAt, timeOf, trim } from "./series.ts";

function series(first: number, count: number, step_ms = 100): Series {
  const steps = Array.from({ length: count }, (_, at) => first + at);
  const column = () => steps.map(() => step_ms);
  return {
    rank: null,
    first: 0,
    last: first + count - 1,
    raw_from: 0,
    warmup_until: null,
    first_step: steps,
    last_step: [...steps],
    count: steps.map(() => 1),
    time_s: steps.map((step) => ((step + 1) * step_ms) / 1000),
    total_ms: column(),
    total_min_ms: column(),
    total_max_ms: column(),
    phases: [{ name: "input", user: false, ms: column() }],
  };
}

test("newer steps are joined, none twice", () => {
  const joined = append(series(0, 5), series(3, 4));
  assert.deepEqual(joined.first_step, [0, 1, 2, 3, 4, 5, 6]);
  assert.equal(joined.phases[0]!.ms.length, 7);
  assert.equal(joined.last, 6);
  const same = series(0, 5);
  assert.equal(append(same, series(2, 2)), same);
});

test("a phase that begins later was not known before, not zero", () => {
  const more = series(2, 1);
  more.phases.push({ name: "decode", user: true, ms: [7] });
  const { phases } = append(series(0, 2), more);
  assert.deepEqual(phases[1], { name: "decode", user: true, ms: [null, null, 7] });
});

test("a window leaves behind what ended before it", () => {
  assert.deepEqual(trim(series(0, 6), 4).first_step, [4, 5]);
  const whole = series(0, 3);
  assert.equal(trim(whole, 0), whole);
});

test("the block of a step", () => {
  const first = [0, 10, 20];
  assert.equal(blockOf(first, 0), 0);
  assert.equal(blockOf(first, 9.9), 0);
  assert.equal(blockOf(first, 10), 1);
  assert.equal(blockOf(first, 999), 2);
  assert.equal(blockOf(first, -5), 0);
  assert.equal(blockOf([], 3), -1);
});

test("steps and times are each other's inverse", () => {
  const of = series(0, 10);
  assert.ok(Math.abs(timeOf(of, 3)! - 0.3) < 1e-9);
  for (const step of [0.5, 3.25, 9.75]) assert.ok(Math.abs(stepAt(of, timeOf(of, step)!)! - step) < 1e-9);
  assert.equal(timeOf({ ...of, first_step: [], time_s: [] }, 3), null);
  assert.equal(stepAt({ ...of, time_s: [] }, 3), null);
});
