// The view as an address, so that a link leads to exactly this view: #/run/KEY?from=10&to=90&rank=3
//
// Thread safety: pure functions. Invariant: parse(format(view)) is the view; what is no word of ours is left out.
import { VIEW, type Range, type Route, type View } from "./state.ts";

export function format(view: View): string {
  const query = new URLSearchParams();
  const { range } = view;
  if (range.kind === "span") {
    query.set("from", String(range.from));
    query.set("to", String(range.to));
  } else if (range.kind === "last") {
    query.set("last", String(range.steps));
  }
  if (view.rank !== null) query.set("rank", String(view.rank));
  if (view.phase !== null) query.set("phase", view.phase);
  for (const name of ["heat", "by", "sort", "order", "filter"] as const) {
    if (view[name] !== VIEW[name]) query.set(name, view[name]);
  }
  if (view.full) query.set("full", "1");
  const words = query.toString();
  return `#${place(view.route)}${view.route.page === "run" && words ? `?${words}` : ""}`;
}

export function place(route: Route): string {
  if (route.page === "run") return `/run/${encodeURIComponent(route.key)}`;
  if (route.page === "compare")
    return `/compare/${encodeURIComponent(route.a)}/${encodeURIComponent(route.b)}`;
  return "/";
}

export function parse(hash: string): View {
  const [path = "", words = ""] = hash.replace(/^#/, "").split("?", 2);
  const query = new URLSearchParams(words);
  const view: View = { ...VIEW, route: route(path), range: range(query) };
  view.rank = integer(query.get("rank"));
  view.phase = query.get("phase");
  view.heat = query.get("heat") ?? VIEW.heat;
  view.by = query.get("by") === "node" ? "node" : "rank";
  view.sort = query.get("sort") ?? VIEW.sort;
  view.order = query.get("order") === "asc" ? "asc" : "desc";
  view.filter = query.get("filter") ?? "";
  view.full = query.get("full") === "1";
  return view;
}

function route(path: string): Route {
  const [page, first, second] = path.split("/").filter(Boolean).map(decoded);
  if (page === "run" && first) return { page, key: first };
  if (page === "compare" && first && second) return { page, a: first, b: second };
  return { page: "runs" };
}

function range(query: URLSearchParams): Range {
  const from = integer(query.get("from"));
  const to = integer(query.get("to"));
  const last = integer(query.get("last"));
  if (from !== null && to !== null && to >= from) return { kind: "span", from, to };
  return last !== null && last > 0 ? { kind: "last", steps: last } : { kind: "all" };
}

const integer = (word: string | null) => (word !== null && /^\d{1,15}$/.test(word) ? Number(word) : null);

function decoded(word: string): string {
  try {
    return decodeURIComponent(word);
  } catch {
    return word;
  }
}
