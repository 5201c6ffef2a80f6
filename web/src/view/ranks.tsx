// The ranks: a heat map over the steps, and a table of the newest ones, worst first. Thousands of rows: only those in
// sight are there, and only those are asked for.
import { useEffect, useRef, useState } from "preact/hooks";
import { isRecorded, type RankRow, type Summary } from "../api.ts";
import { HeatChart } from "../chart/heat.tsx";
import { act } from "../control.ts";
import { bytes, digits, grouped, ms, NONE, safe, span } from "../format.ts";
import { shown, type RunData } from "../state.ts";
import { useSelect } from "../store.ts";
import { Choice, Section, Spark } from "./parts.tsx";

const ROW_PX = 26;
const MOST_ROWS = 18; // in sight
const SPARE_ROWS = 6; // drawn beyond what is in sight

const SHORT: Record<string, string> = {
  forward: "fwd",
  backward: "bwd",
  optimizer: "opt",
  checkpoint: "chkpt",
  validation: "valid",
};

interface Column {
  sort: string;
  title: string;
  label: string;
  text: boolean;
  cell: (row: RankRow) => preact.ComponentChildren;
}

function columnsFor(phases: readonly string[], by: "rank" | "node", live: boolean): Column[] {
  const number = (sort: string, label: string, title: string, value: (row: RankRow) => string): Column => ({
    sort,
    label,
    title,
    text: false,
    cell: value,
  });
  return [
    by === "rank"
      ? number("rank", "rank", "rank", (row) => (row.rank === null ? "-" : String(row.rank)))
      : number("ranks", "ranks", "ranks on the node", (row) => grouped(row.ranks)),
    { sort: "node", label: "node", title: "node", text: true, cell: (row) => safe(row.node ?? "-") },
    number("step", "step", "newest step", (row) => grouped(row.step)),
    number("late_ms", "late", "mean lateness at the sync points of a step, ms", (row) => ms(row.late_ms)),
    number("total_ms", "total", "mean step, ms", (row) => ms(row.total_ms)),
    number("own_ms", "own", "step without waiting for others, ms", (row) => ms(row.own_ms)),
    ...phases.map((name) =>
      number(name, SHORT[name] ?? name, `${name}, ms`, (row) => ms(row.phases[name] ?? null)),
    ),
    number("memory_bytes", "memory", "resident memory", (row) => bytes(row.memory_bytes)),
    number("cpu_cores", "cores", "busy processor cores", (row) => digits(row.cpu_cores)),
    {
      sort: "",
      label: "trend",
      title: "step time, oldest to newest",
      text: true,
      cell: (row) => <Spark values={row.trend} />,
    },
    {
      sort: "state",
      label: live ? "doing" : "state",
      title: "what it does now",
      text: true,
      cell: (row) =>
        row.doing && row.state === "live"
          ? `${safe(row.doing.phase)}${row.doing.since_s !== null && row.doing.since_s >= 1 ? ` ${span(row.doing.since_s)}` : ""}`
          : isRecorded && row.state === "gone" // a run that went on: its file does not tell what it did
            ? NONE
            : row.state,
    },
  ];
}

export function RanksView({ run, summary }: { run: RunData; summary: Summary }) {
  const view = useSelect((state) => state.view);
  const dark = useSelect((state) => state.dark);
  const domain = useSelect((state) => {
    const span = shown(state);
    return span ? `${span.from}/${span.to}` : "";
  });
  const [from = 0, to = 1] = domain.split("/").map(Number);
  const { heatmap } = run;
  const single = summary.run.ranks <= 1;
  const present = Object.entries(summary.phases).filter(([, phase]) => (phase.mean_ms ?? 0) > 0);
  const values: [string, string][] = [
    ...(single ? [] : [["late", "lateness"] as [string, string]]),
    ["total", "step"],
  ];
  for (const [name] of present) values.push([name, safe(name)]);
  return (
    <Section
      id="ranks"
      title={single ? "The rank" : "Ranks"}
      aside={
        <div class="aside">
          {summary.run.nodes > 1 && (
            <Choice
              name="a row is"
              value={view.by}
              options={[
                ["rank", "ranks"],
                ["node", "nodes"],
              ]}
              onChoose={(by) => act().look({ by })}
            />
          )}
        </div>
      }
    >
      {!single && heatmap && domain !== "" && (
        <div class="split">
          <div class="plots">
            {heatmap.values.length > 0 ? (
              <HeatChart
                map={heatmap}
                domain={{ from, to }}
                {...{ dark }}
                chosen={view.rank}
                onPick={(rank, node) =>
                  rank !== null
                    ? act().look({ rank: view.rank === rank ? null : rank })
                    : node && act().look({ by: "rank", filter: node })
                }
              />
            ) : (
              <p class="dim">No step that all of them finished yet.</p>
            )}
          </div>
          <div class="side">
            <fieldset class="values">
              <legend>heat map of</legend>
              {values.map(([value, word]) => (
                <button
                  key={value}
                  type="button"
                  aria-pressed={view.heat === value}
                  onClick={() => act().look({ heat: value })}
                >
                  {word}
                </button>
              ))}
            </fieldset>
            <p class="dim small">
              {view.heat === "late"
                ? "Lateness: how long the others waited for this rank at its sync points. In a healthy run somebody is always last; a row that stays bright is not healthy."
                : "Milliseconds of each step. Rows are in the order of the worst."}
            </p>
          </div>
        </div>
      )}
      <RankTable {...{ run, present }} names={present.map(([name]) => name)} />
    </Section>
  );
}

function RankTable({ run, names }: { run: RunData; present: unknown; names: string[] }) {
  const view = useSelect((state) => state.view);
  const chosen = useSelect((state) => state.row);
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const { ranks } = run;
  const total = ranks?.total ?? 0;
  const columns = columnsFor(names, view.by, !run.ended);
  const first = Math.max(0, Math.floor(top / ROW_PX) - SPARE_ROWS);
  const last = Math.min(total, first + MOST_ROWS + 2 * SPARE_ROWS);

  useEffect(() => act().showRows(first, last), [first, last, ranks?.query, total]);
  // The row chosen by key comes into sight.
  useEffect(() => {
    const element = box.current;
    if (!element || chosen < 0) return;
    const y = chosen * ROW_PX;
    if (y < element.scrollTop) element.scrollTop = y;
    else if (y + ROW_PX * 2 > element.scrollTop + element.clientHeight)
      element.scrollTop = y + ROW_PX * 2 - element.clientHeight;
  }, [chosen]);
  useEffect(() => {
    if (box.current) box.current.scrollTop = 0;
  }, [view.sort, view.order, view.filter, view.by]);

  const sort = (column: Column) =>
    act().look(
      view.sort === column.sort
        ? { order: view.order === "asc" ? "desc" : "asc" }
        : { sort: column.sort, order: column.text || column.sort === "rank" ? "asc" : "desc" },
    );
  const rows: preact.JSX.Element[] = [];
  for (let at = first; at < last; at += 1) {
    const row = ranks?.rows.get(at);
    rows.push(
      <tr
        key={at}
        aria-rowindex={at + 2}
        class={`${at === chosen ? "chosen" : ""}${row?.rank != null && row.rank === view.rank ? " only" : ""}${row?.state === "gone" ? " gone" : ""}`}
        onClick={() => {
          if (!row) return;
          if (row.rank !== null) act().look({ rank: view.rank === row.rank ? null : row.rank });
          else if (row.node) act().look({ by: "rank", filter: row.node });
        }}
      >
        {columns.map((column) => (
          <td
            key={column.label}
            class={column.text ? "text" : undefined}
            data-column={column.sort || column.label}
          >
            {row ? column.cell(row) : "…"}
          </td>
        ))}
      </tr>,
    );
  }
  const windowed = ranks?.window_steps ?? null;
  return (
    <>
      <div class="tools">
        {(ranks?.of ?? 0) > 8 || view.filter !== "" ? (
          <input
            type="search"
            placeholder={view.by === "rank" ? "filter by rank or node" : "filter by node"}
            aria-label="filter the table"
            value={view.filter}
            maxLength={100}
            onInput={(event) => act().look({ filter: event.currentTarget.value })}
          />
        ) : null}
        <span class="dim small">
          {windowed !== null &&
            `means over the newest ${windowed === 1 ? "step" : `${grouped(windowed)} steps`}, ms; `}
          {ranks && ranks.total !== ranks.of
            ? `${grouped(ranks.total)} of ${grouped(ranks.of)}`
            : grouped(total)}{" "}
          {view.by === "rank" ? (total === 1 ? "rank" : "ranks") : total === 1 ? "node" : "nodes"}
        </span>
      </div>
      <div
        class="rows"
        ref={box}
        tabIndex={0}
        role="region"
        aria-label="table of ranks"
        onScroll={(event) => setTop(event.currentTarget.scrollTop)}
        style={{ maxHeight: `${(Math.min(Math.max(total, 1), MOST_ROWS) + 1) * ROW_PX + 12}px` }}
      >
        <table class="ranks" aria-rowcount={total + 1}>
          <thead>
            <tr>
              {columns.map((column) => (
                <th
                  key={column.label}
                  scope="col"
                  class={column.text ? "text" : undefined}
                  title={column.title}
                  aria-sort={
                    column.sort !== "" && column.sort === view.sort
                      ? view.order === "asc"
                        ? "ascending"
                        : "descending"
                      : undefined
                  }
                >
                  {column.sort === "" ? (
                    column.label
                  ) : (
                    <button type="button" onClick={() => sort(column)}>
                      {column.label}
                      <span aria-hidden="true">
                        {column.sort === view.sort ? (view.order === "asc" ? " ↑" : " ↓") : ""}
                      </span>
                    </button>
                  )}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {first > 0 && <Spacer rows={first} />}
            {rows}
            {last < total && <Spacer rows={total - last} />}
          </tbody>
        </table>
      </div>
      {total === 0 && ranks && <p class="dim">Nothing matches “{safe(view.filter)}”.</p>}
    </>
  );
}

const Spacer = ({ rows }: { rows: number }) => (
  <tr aria-hidden="true" style={{ height: `${rows * ROW_PX}px` }}>
    <td />
  </tr>
);
