import assert from "node:assert/strict";
import { test } from "node:test";
import { VIEW, type View } from "./state.ts";
import { format, parse } from "./url.ts";

test("a link leads to exactly this view", () => {
  const views: View[] = [
    { ...VIEW, route: { page: "runs" } },
    { ...VIEW, route: { page: "run", key: "a/b c?d&<img>%" } },
    { ...VIEW, route: { page: "compare", a: "x y", b: "z#" } },
    {
      route: { page: "run", key: "train" },
      range: { kind: "span", from: 10, to: 90 },
      rank: 0,
      phase: "my phase&x=1",
      heat: "sync",
      by: "node",
      sort: "own_ms",
      order: "asc",
      filter: "node 7 #?&",
      full: true,
    },
    { ...VIEW, route: { page: "run", key: "k" }, range: { kind: "last", steps: 300 } },
  ];
  for (const view of views) assert.deepEqual(parse(format(view)), view);
});

test("words that are none of ours are left out", () => {
  const view = parse("#/run/k?from=9&to=3&last=-1&rank=x&order=up&by=phase&evil=<b>");
  assert.deepEqual(view, { ...VIEW, route: { page: "run", key: "k" } });
  assert.deepEqual(parse("#/run/%E0%A4%A").route, { page: "run", key: "%E0%A4%A" });
  assert.deepEqual(parse("#/nowhere").route, { page: "runs" });
});
