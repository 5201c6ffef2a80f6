import assert from "node:assert/strict";
import { test } from "node:test";
import type { Heatmap, RankRow, Ranks, Series, Summary } from "./api.ts";
import { answer, type Recorded } from "./recorded.ts";

function series(rank: number | null): Series {
  const first = [0, 10, 20];
  const column = () => first.map((step) => step + 0.5);
  return {
    rank,
    first: 0,
    last: 29,
    raw_from: 0,
    warmup_until: null,
    first_step: first,
    last_step: [9, 19, 29],
    count: [10, 10, 10],
    time_s: [1, 2, 3],
    total_ms: column(),
    total_min_ms: column(),
    total_max_ms: column(),
    phases: [{ name: "input", user: false, ms: [1, null, 3] }],
  };
}

const row = (rank: number, late_ms: number | null, input: number | null): RankRow =>
  ({ rank, node: rank < 2 ? "alpha" : "Beta", late_ms, phases: { input } }) as unknown as RankRow;
const piece = (rows: RankRow[]): Ranks => ({ by: "rank", total: 4, of: 4, window_steps: 9, rows });

const recorded: Recorded = {
  summary: {
    live: false,
    run: { name: "n", started: null, duration_s: 3, ranks: 4 },
    steps: { count: 30, mean_ms: 100 },
    throughput: { samples_per_s: null },
    verdict: { code: "X", severity: "info", title: "t" },
    phases: { input: { share: 0.5 } },
  } as unknown as Summary,
  series: [series(null), series(3), null],
  ranks: [piece([row(0, 1, 5), row(1, null, 7)]), piece([row(2, 9, null), row(3, 4, 6)])],
  heatmaps: [
    {
      value: "late",
      by: "rank",
      first_step: [0, 10],
      last_step: [9, 19],
      values: [
        [1, 2],
        [3, null],
      ],
    } as unknown as Heatmap,
  ],
  resources: null,
  events: { events: [] },
};
const ask = <T>(path: string) => answer(recorded, path) as T;
const order = (query: string) => ask<Ranks>(`/v1/runs/run/ranks?by=rank&${query}`).rows.map((it) => it.rank);

test("the run is the only one, and its views are what was recorded", () => {
  const { runs } = ask<{ runs: { key: string; phases: unknown }[] }>("/v1/runs");
  assert.equal(runs.length, 1);
  assert.deepEqual(runs[0]!.phases, { input: 0.5 });
  assert.equal(ask(`/v1/runs/${runs[0]!.key}/summary?brief`), recorded.summary);
  assert.equal(ask("/v1/runs/run/events"), recorded.events);
});

test("steps are cut out in whole blocks", () => {
  assert.deepEqual(ask<Series>("/v1/runs/run/series?points=500").count, [10, 10, 10]);
  const cut = ask<Series>("/v1/runs/run/series?rank=3&points=500&from=15&to=20");
  assert.deepEqual([cut.rank, cut.first_step, cut.phases[0]!.ms], [3, [10, 20], [null, 3]]);
  assert.deepEqual(ask<Series>("/v1/runs/run/series?from=90&to=99").first_step, []);
  assert.deepEqual(ask<Heatmap>("/v1/runs/run/heatmap?value=late&by=rank&from=10&to=10").values, [
    [2],
    [null],
  ]);
});

test("rows in any order; what is not measured comes last in both", () => {
  assert.deepEqual(order("sort=late_ms&order=desc"), [2, 3, 0, 1]);
  assert.deepEqual(order("sort=late_ms&order=asc"), [0, 3, 2, 1]);
  assert.deepEqual(order("sort=input&order=asc"), [0, 3, 1, 2]);
  assert.deepEqual(order("sort=node&order=asc"), [2, 3, 0, 1]);
  assert.deepEqual(order("sort=rank&order=desc&offset=1&limit=2"), [2, 1]);
  assert.deepEqual(order("sort=rank&order=asc&filter=beta"), [2, 3]);
  assert.deepEqual(order("sort=rank&order=asc&filter=1"), [1]);
  assert.equal(ask<Ranks>("/v1/runs/run/ranks?filter=beta").total, 2);
});

test("what was not recorded is null", () => {
  for (const path of ["series?rank=1", "heatmap?value=gc&by=rank", "resources", "ranks?by=node", "health"])
    assert.equal(ask(`/v1/runs/run/${path}`), null, path);
  assert.equal(ask("/v1/runs/other/summary"), null);
  assert.equal(ask("/v1/compare?a=1&b=2"), null);
});
