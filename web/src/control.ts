// What happens: the address, the socket and the user's actions change the state; what the state then lacks is fetched.
//
// Invariants: one request of a kind at a time, and a newer one of that kind makes the older one's answer void; while
// paused nothing that is shown changes by itself; nothing is polled while the page is hidden.
import { ApiError, get, isRecorded, path, runPath } from "./api.ts";
import type {
  Difference,
  Frame,
  Heatmap,
  Ranks,
  ResourceSeries,
  RunEvent,
  RunRow,
  Series,
  Summary,
} from "./api.ts";
import { LiveSocket } from "./live.ts";
import { append, trim } from "./series.ts";
import { newRun, VIEW } from "./state.ts";
import type { Problem, Range, RunData, State, Theme, View } from "./state.ts";
import type { Store } from "./store.ts";
import * as url from "./url.ts";

export const PAGE_OF_RANKS = 100;
const POINTS = 500; // blocks asked for
const MOST_POINTS = 900; // with what came since, before it is asked for again
const HEAT_ROWS = 64;
const LIVE_MS = {
  ranks: 1000,
  heatmap: 2000,
  resources: 2000,
  events: 2000,
  runs: 3000,
  of_rank: 500,
  summary: 1000,
};

type Kind = "runs" | "summary" | "series" | "ranks" | "heatmap" | "resources" | "events" | "compare";

export class Control {
  private readonly store: Store;
  private socket: LiveSocket | null = null;
  private readonly asked = new Map<Kind, AbortController>();
  private readonly due = new Map<Kind, number>(); // when it was last asked for

  constructor(store: Store) {
    this.store = store;
    window.addEventListener("hashchange", () => this.enter(url.parse(location.hash)));
    document.addEventListener("visibilitychange", () => this.returned());
    window.addEventListener("online", () => this.socket?.hurry());
    setInterval(() => this.second(), 1000);
    setInterval(() => this.poll(), 250);
    this.enter(url.parse(location.hash));
    void this.loadRuns();
  }

  // --- where we are -------------------------------------------------------------------------------------------------

  private get state(): State {
    return this.store.get();
  }

  private enter(view: View): void {
    const before = this.state.view;
    const moved = url.place(before.route) !== url.place(view.route);
    this.store.set({ view });
    const { route } = view;
    if (moved || (route.page === "run" && this.state.run?.key !== route.key)) {
      this.leave();
      this.store.set({ back: [], paused: false, missed: false, cursor: null, row: -1 });
      window.scrollTo(0, 0);
      if (route.page === "run") this.openRun(route.key);
      if (route.page === "compare") void this.loadCompare(route.a, route.b);
      if (route.page === "runs") void this.loadRuns();
    } else {
      this.refresh(before);
    }
  }

  private leave(): void {
    this.socket?.close();
    this.socket = null;
    for (const kind of this.asked.keys()) if (kind !== "runs") this.asked.get(kind)?.abort();
    this.store.set({ run: null, compared: null, link: { state: "idle" } });
  }

  // The view changed by an action; the address follows.
  look(change: Partial<View>, back: Range[] = this.state.back): void {
    const before = this.state.view;
    const view = { ...before, ...change };
    this.store.set({ view, back });
    if (url.place(view.route) !== url.place(before.route)) {
      location.hash = url.format({ ...VIEW, route: view.route });
      return;
    }
    history.replaceState(null, "", url.format(view));
    this.refresh(before);
  }

  // Fetches what the new view needs and the old one did not.
  private refresh(before: View): void {
    const { view, run } = this.state;
    if (!run) return;
    const changed = (...names: (keyof View)[]) => names.some((name) => view[name] !== before[name]);
    if (changed("range", "rank")) void this.loadSeries();
    if (changed("range", "heat", "by")) void this.loadHeatmap();
    if (changed("by", "sort", "order", "filter")) void this.loadRanks(0);
  }

  // --- one run ------------------------------------------------------------------------------------------------------

  private openRun(key: string): void {
    const known = this.state.runs?.find((run) => run.key === key);
    const ended = isRecorded || known?.state === "ended";
    this.store.set({ run: { ...newRun(key), ended }, link: { state: ended ? "idle" : "connecting" } });
    this.loadAll();
    if (known && !ended) this.connect(key);
  }

  private connect(key: string): void {
    this.socket = new LiveSocket(runPath(key, "live"), {
      opened: () => {
        const again = this.state.link.state === "lost";
        this.store.set({ link: { state: "open" } });
        if (again) this.loadAll(); // what was missed meanwhile
      },
      frame: (frame) => this.take(frame),
      lost: (retry_ms) => {
        const { link, now } = this.state;
        const at = performance.now();
        this.store.set({
          link: { state: "lost", since: link.state === "lost" ? link.since : at, retry_at: at + retry_ms },
          now: Math.max(now, at),
        });
        // A run that ended while nobody listened, or a token that is no longer the server's.
        void this.loadSummary();
      },
    });
  }

  private take(frame: Frame): void {
    const { run } = this.state;
    if (!run) return;
    if (frame.type === "end") return this.ended();
    if (frame.type === "summary") {
      if (this.state.paused) this.store.set({ missed: true });
      else this.change({ summary: frame.summary });
      return;
    }
    const { state, step, age_s, duration_s, series } = frame;
    this.change({ newest: { state, step, age_s, duration_s, at: performance.now() } });
    if (state === "ended") return this.ended();
    if (!series || series.first_step.length === 0) return;
    if (this.state.paused) this.store.set({ missed: true });
    else this.join(series, series.gap === true);
  }

  private join(more: Series, gap: boolean): void {
    const { run, view } = this.state;
    if (!run?.series || view.range.kind === "span") return;
    if (view.rank !== null) {
      if (this.old("series", LIVE_MS.of_rank)) void this.loadSeries();
      return;
    }
    let series = append(run.series, more);
    if (view.range.kind === "last")
      series = trim(series, (series.last_step.at(-1) ?? 0) + 1 - view.range.steps);
    this.change({ series });
    if ((gap || series.count.length > MOST_POINTS) && this.old("series", LIVE_MS.of_rank))
      void this.loadSeries();
  }

  private ended(): void {
    this.socket?.close();
    this.socket = null;
    if (this.state.run?.ended) return;
    this.change({ ended: true });
    this.store.set({ link: { state: "idle" }, paused: false, missed: false });
    this.loadAll();
    void this.loadRuns();
  }

  private change(change: Partial<RunData>): void {
    const { run } = this.state;
    if (run) this.store.set({ run: { ...run, ...change } });
  }

  // --- fetching -----------------------------------------------------------------------------------------------------

  private old(kind: Kind, age_ms: number): boolean {
    return performance.now() - (this.due.get(kind) ?? -Infinity) >= age_ms && !this.asked.has(kind);
  }

  // The answer, or null where it failed (then the problem is in the state) or a newer question made it void.
  private async ask<T>(kind: Kind, address: string, keep = false): Promise<T | null> {
    if (keep && this.asked.has(kind)) return null;
    this.asked.get(kind)?.abort();
    const abort = new AbortController();
    this.asked.set(kind, abort);
    this.due.set(kind, performance.now());
    const key = this.state.run?.key;
    try {
      const answer = await get<T>(address, abort.signal);
      if (
        this.asked.get(kind) !== abort ||
        (kind !== "runs" && kind !== "compare" && this.state.run?.key !== key)
      ) {
        return null;
      }
      return answer;
    } catch (error) {
      if (this.asked.get(kind) === abort && error instanceof ApiError) this.failed(kind, error);
      return null;
    } finally {
      if (this.asked.get(kind) === abort) this.asked.delete(kind);
    }
  }

  private failed(kind: Kind, error: ApiError): void {
    const problem: Problem = { text: error.message, hint: error.hint, status: error.status };
    if (kind === "runs") this.store.set({ runs_problem: problem });
    else if (kind === "compare") this.compared({ problem });
    else if (kind === "summary" || error.status === 401) this.change({ problem });
    else this.store.set({ said: `${kind}: ${error.message}` });
  }

  loadAll(): void {
    void this.loadSummary();
    void this.loadSeries();
    void this.loadRanks(0);
    void this.loadHeatmap();
    void this.loadEvents();
    void this.loadResources();
  }

  private address(what: string): string {
    return runPath(this.state.run?.key ?? "", what);
  }

  private async loadRuns(): Promise<void> {
    const answer = await this.ask<{ runs: RunRow[] }>("runs", "/v1/runs", true);
    if (!answer) return;
    const { view, run } = this.state;
    this.store.set({ runs: answer.runs, runs_problem: null });
    // One run and no address: that run.
    if (view.route.page === "runs" && location.hash === "" && answer.runs.length === 1) {
      const to = url.format({ ...VIEW, route: { page: "run", key: answer.runs[0]!.key } });
      history.replaceState(null, "", to);
      this.enter(url.parse(to));
    } else if (run && !run.ended && answer.runs.some((row) => row.key === run.key && row.state === "ended")) {
      this.ended();
    }
  }

  private async loadSummary(): Promise<void> {
    const summary = await this.ask<Summary>("summary", this.address("summary?brief"));
    if (!summary) return;
    const late = this.state.run?.problem != null && this.state.run.summary === null;
    this.change({ summary, problem: null });
    if (late) this.loadAll(); // the rest was refused too
    if (isRecorded || (!summary.live && !this.socket)) this.change({ ended: true });
    else if (!summary.live) this.ended();
    else if (!this.socket && this.state.run) this.connect(this.state.run.key);
  }

  private async loadSeries(): Promise<void> {
    const { range, rank } = this.state.view;
    const last = this.state.run?.newest?.step ?? this.state.run?.series?.last ?? null;
    const query = {
      rank,
      points: POINTS,
      from:
        range.kind === "span"
          ? range.from
          : range.kind === "last" && last !== null
            ? last + 1 - range.steps
            : null,
      to: range.kind === "span" ? range.to : null,
    };
    if (query.from !== null && query.from < 0) query.from = 0;
    const series = await this.ask<Series>("series", path(this.address("series"), query));
    if (!series) return;
    // Steps that the socket brought while this was on its way.
    const before = this.state.run?.series;
    const series_of = `${range.kind}/${rank ?? "job"}`;
    const same = before && this.state.run?.series_of === series_of && range.kind !== "span" && rank === null;
    this.change({
      series: same && series.last_step.length > 0 ? append(series, tail(before, series)) : series,
      series_of,
    });
  }

  // Rows from `from` on, of the present order and filter.
  async loadRanks(from: number): Promise<void> {
    const { by, sort, order, filter } = this.state.view;
    const query = JSON.stringify([by, sort, order, filter]);
    const offset = Math.floor(from / PAGE_OF_RANKS) * PAGE_OF_RANKS;
    const ranks = await this.ask<Ranks>(
      "ranks",
      path(this.address("ranks"), { by, sort, order, filter, offset, limit: PAGE_OF_RANKS }),
    );
    if (!ranks) return;
    const before = this.state.run?.ranks;
    const rows = new Map(before?.query === query && before.total === ranks.total ? before.rows : []);
    ranks.rows.forEach((row, index) => rows.set(offset + index, row));
    this.change({
      ranks: { query, total: ranks.total, of: ranks.of, window_steps: ranks.window_steps, rows },
    });
  }

  private async loadHeatmap(): Promise<void> {
    const { heat, by, range } = this.state.view;
    const newest = this.state.run?.newest?.step ?? this.state.run?.series?.last ?? null;
    const heatmap = await this.ask<Heatmap>(
      "heatmap",
      path(this.address("heatmap"), {
        value: heat,
        by,
        from:
          range.kind === "span"
            ? range.from
            : range.kind === "last" && newest !== null
              ? Math.max(0, newest + 1 - range.steps)
              : null,
        to: range.kind === "span" ? range.to : null,
        columns: 240,
        rows: HEAT_ROWS,
        order: "worst",
      }),
    );
    if (heatmap) this.change({ heatmap });
  }

  private async loadResources(): Promise<void> {
    const resources = await this.ask<ResourceSeries>(
      "resources",
      path(this.address("resources"), { points: POINTS }),
    );
    if (resources) this.change({ resources });
  }

  private async loadEvents(): Promise<void> {
    const answer = await this.ask<{ events: RunEvent[] }>("events", this.address("events"));
    if (answer) this.change({ events: answer.events });
  }

  private async loadCompare(a: string, b: string): Promise<void> {
    this.store.set({ compared: { a: null, b: null, result: null, problem: null } });
    const summary = (key: string) =>
      get<Summary>(runPath(key, "summary?brief")).catch((error: unknown) => {
        if (error instanceof ApiError) this.failed("compare", error);
        return null;
      });
    const [first, second] = await Promise.all([summary(a), summary(b)]);
    this.compared({ a: first, b: second });
    const result = await this.ask<Difference>("compare", path("/v1/compare", { a, b }));
    if (result) this.compared({ result });
  }

  private compared(change: Partial<NonNullable<State["compared"]>>): void {
    const { compared } = this.state;
    if (compared) this.store.set({ compared: { ...compared, ...change } });
  }

  // --- time ---------------------------------------------------------------------------------------------------------

  private second(): void {
    if (!document.hidden) this.store.set({ now: performance.now() });
  }

  // What changes while a run goes on and is not sent by itself. A slow server is asked less often.
  private poll(): void {
    if (document.hidden) return;
    const { view, run, paused, link } = this.state;
    if (view.route.page === "runs" && this.old("runs", LIVE_MS.runs)) void this.loadRuns();
    // A server or an agent that did not answer when the page came is asked again.
    if (run?.problem && !run.summary && this.old("summary", LIVE_MS.summary)) void this.loadSummary();
    if (!run || run.ended || paused || link.state !== "open") return;
    if (this.old("ranks", LIVE_MS.ranks)) void this.loadRanks(this.row_from);
    if (view.range.kind !== "span" && this.old("heatmap", LIVE_MS.heatmap)) void this.loadHeatmap();
    if (this.old("resources", LIVE_MS.resources)) void this.loadResources();
    if (this.old("events", LIVE_MS.events)) void this.loadEvents();
    if (!run.series && this.old("series", LIVE_MS.ranks)) void this.loadSeries();
  }

  private row_from = 0;
  // The table shows rows from here on: those are what is kept fresh.
  showRows(from: number, to: number): void {
    this.row_from = from;
    const { run } = this.state;
    if (!run?.ranks) return;
    for (let page = Math.floor(from / PAGE_OF_RANKS); page <= Math.floor(to / PAGE_OF_RANKS); page += 1) {
      if (page * PAGE_OF_RANKS < run.ranks.total && !run.ranks.rows.has(page * PAGE_OF_RANKS)) {
        if (!this.asked.has("ranks"))
          void this.loadRanks(page * PAGE_OF_RANKS).then(() => this.showRows(from, to));
        return;
      }
    }
  }

  private returned(): void {
    if (document.hidden) return;
    this.socket?.hurry();
    this.store.set({ now: performance.now() });
    if (this.state.run && !this.state.paused && this.state.link.state === "open") this.loadAll();
  }

  // --- actions ------------------------------------------------------------------------------------------------------

  say(said: string): void {
    this.store.set({ said });
    setTimeout(() => this.state.said === said && this.store.set({ said: "" }), 2500);
  }

  zoom(from: number, to: number): void {
    const span: Range = {
      kind: "span",
      from: Math.max(0, Math.floor(from)),
      to: Math.max(Math.floor(from), Math.ceil(to) - 1),
    };
    this.look({ range: span }, [...this.state.back, this.state.view.range].slice(-20));
  }

  zoomBack(): void {
    const back = [...this.state.back];
    this.look({ range: back.pop() ?? { kind: "all" } }, back);
  }

  range(range: Range): void {
    this.look({ range }, []);
  }

  pause(paused: boolean): void {
    if (!this.state.run || this.state.run.ended) return;
    this.store.set({ paused, missed: false });
    if (!paused) this.loadAll();
  }

  theme(theme: Theme): void {
    this.store.set({ theme });
  }

  cursor(step: number | null): void {
    if (step !== this.state.cursor) this.store.set({ cursor: step });
  }

  choose(key: string): void {
    const { chosen } = this.state;
    this.store.set({
      chosen: chosen.includes(key) ? chosen.filter((it) => it !== key) : [...chosen, key].slice(-2),
    });
  }

  set(change: Partial<Pick<State, "help" | "row">>): void {
    this.store.set(change);
  }
}

function tail(before: Series, fresh: Series): Series {
  return trim(before, (fresh.last_step.at(-1) ?? -1) + 1);
}

let control: Control;
export const provideControl = (made: Control) => (control = made);
export const act = () => control;
