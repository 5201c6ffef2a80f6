import assert from "node:assert/strict";
import { test } from "node:test";
import { liveness, newRun, shown, VIEW, type RunData, type State } from "./state.ts";
import type { Series, Summary } from "./api.ts";

const summary = (count: number, mean_ms: number | null) =>
  ({ steps: { count, mean_ms } }) as unknown as Summary;

function state(run: Partial<RunData> | null, change: Partial<State> = {}): State {
  return {
    view: { ...VIEW, route: { page: "run", key: "k" } },
    run: run && { ...newRun("k"), summary: summary(10, 100), ...run },
    link: { state: "open" },
    paused: false,
    missed: false,
    now: 100_000,
    ...change,
  } as State;
}
const newest = (age_s: number, at = 100_000) => ({
  state: "live" as const,
  step: 9,
  age_s,
  duration_s: 1,
  at,
});

test("one word for how fresh the page is", () => {
  assert.equal(liveness(state(null)).word, "loading");
  assert.equal(liveness(state({ newest: newest(0.1) })).word, "live");
  assert.equal(liveness(state({ newest: newest(0.1) }, { paused: true })).word, "paused");
  assert.equal(
    liveness(state({ ended: true }, { link: { state: "lost", retry_at: 0, since: 0 } })).word,
    "ended",
  );
  assert.equal(liveness(state({ summary: summary(0, null) })).word, "no data yet");
  assert.equal(liveness(state({ newest: { ...newest(1), state: "paused" } })).word, "recording off");
});

test("stale from what the server said and the time since, by the length of a step", () => {
  assert.equal(liveness(state({ newest: newest(0.1, 95_000) })).word, "stale");
  assert.equal(liveness(state({ newest: newest(4), summary: summary(10, 1000) })).word, "live");
  const stale = liveness(state({ newest: newest(6), summary: summary(10, 1000) }));
  assert.ok(stale.word === "stale" && stale.for_s === 6);
});

test("disconnected says since when and when it tries again", () => {
  const lost = liveness(
    state({ newest: newest(0.1) }, { link: { state: "lost", since: 90_000, retry_at: 102_500 } }),
  );
  assert.deepEqual(lost, { word: "disconnected", detail: "tries again in 3 s", for_s: 10 });
});

test("the steps shown", () => {
  const series = { first_step: [0, 10], last_step: [9, 19] } as unknown as Series;
  assert.deepEqual(shown(state({ series })), { from: 0, to: 20 });
  const view = { ...VIEW, route: { page: "runs" as const } };
  assert.deepEqual(shown(state({ series }, { view: { ...view, range: { kind: "last", steps: 5 } } })), {
    from: 15,
    to: 20,
  });
  assert.deepEqual(shown(state({ series }, { view: { ...view, range: { kind: "span", from: 3, to: 4 } } })), {
    from: 3,
    to: 5,
  });
  assert.equal(shown(state({})), null);
});
