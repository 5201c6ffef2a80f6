// All runs of the folder that is served, the newest first; two of them chosen can be compared.
import { useState } from "preact/hooks";
import { act } from "../control.ts";
import type { RunRow } from "../api.ts";
import { clock, duration, grouped, rate, safe, span } from "../format.ts";
import { useSelect } from "../store.ts";
import * as url from "../url.ts";
import { VIEW } from "../state.ts";
import { Badge, MiniBar, Problem } from "./parts.tsx";

const link = (key: string) => url.format({ ...VIEW, route: { page: "run", key } });

export function RunsView() {
  const runs = useSelect((state) => state.runs);
  const problem = useSelect((state) => state.runs_problem);
  const chosen = useSelect((state) => state.chosen);
  const [filter, setFilter] = useState("");
  if (problem && !runs) return problem.status === 401 ? null : <Problem {...problem} />;
  if (!runs) return <p class="dim wait">Loading the list of runs</p>;
  if (runs.length === 0) {
    return (
      <div class="empty">
        <h1>No runs yet</h1>
        <p>This folder holds none. Train with</p>
        <pre>stepscope run python train.py</pre>
        <p class="dim">and it appears here while it goes on.</p>
      </div>
    );
  }
  const word = filter.toLowerCase();
  const rows = runs.filter((run) =>
    `${run.name} ${run.verdict?.code ?? ""} ${run.state}`.toLowerCase().includes(word),
  );
  return (
    <section id="runs" aria-labelledby="runs-title">
      <header class="title">
        <h1 id="runs-title">Runs</h1>
        <div class="aside">
          {runs.length > 1 && (
            <>
              <input
                type="search"
                placeholder="filter by name or verdict"
                aria-label="filter the runs"
                value={filter}
                onInput={(event) => setFilter(event.currentTarget.value)}
              />
              <button
                type="button"
                disabled={chosen.length !== 2}
                onClick={() => act().look({ route: { page: "compare", a: chosen[0]!, b: chosen[1]! } })}
              >
                {chosen.length === 2 ? "compare the two" : "choose two to compare"}
              </button>
            </>
          )}
        </div>
      </header>
      <div class="rows">
        <table class="runs">
          <thead>
            <tr>
              {runs.length > 1 && (
                <th scope="col">
                  <span class="sr">compare</span>
                </th>
              )}
              <th scope="col" class="text">
                run
              </th>
              <th scope="col" class="text wide">
                verdict
              </th>
              <th scope="col" class="text">
                where the step goes
              </th>
              <th scope="col">step</th>
              <th scope="col">samples/s</th>
              <th scope="col">steps</th>
              <th scope="col">ranks</th>
              <th scope="col">duration</th>
              <th scope="col" class="text">
                started
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map((run) => (
              <Row key={run.key} run={run} several={runs.length > 1} chosen={chosen.includes(run.key)} />
            ))}
          </tbody>
        </table>
      </div>
      {rows.length === 0 && <p class="dim">Nothing matches “{safe(filter)}”.</p>}
    </section>
  );
}

function Row({ run, several, chosen }: { run: RunRow; several: boolean; chosen: boolean }) {
  return (
    <tr class={chosen ? "chosen" : undefined}>
      {several && (
        <td>
          <input
            type="checkbox"
            checked={chosen}
            aria-label={`compare ${safe(run.name)}`}
            onChange={() => act().choose(run.key)}
          />
        </td>
      )}
      <td class="text name">
        <a href={link(run.key)} title={safe(run.folder)}>
          {safe(run.name)}
        </a>{" "}
        {run.state === "live" && <span class="state live">live</span>}
      </td>
      <td class="text wide">
        {run.verdict ? (
          <>
            <Badge severity={run.verdict.severity} /> <b class="code">{safe(run.verdict.code)}</b>{" "}
            {safe(run.verdict.title)}
          </>
        ) : (
          "-"
        )}
      </td>
      <td class="text">
        <MiniBar shares={run.phases ?? {}} />
      </td>
      <td>{duration(run.mean_ms)}</td>
      <td>{rate(run.samples_per_s)}</td>
      <td>{grouped(run.steps)}</td>
      <td>{grouped(run.ranks)}</td>
      <td>{span(run.duration_s)}</td>
      <td class="text">{clock(run.started)}</td>
    </tr>
  );
}
