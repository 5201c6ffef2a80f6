// What stands where a run would, when there is nothing to show: why, and what to do.
import type { Summary } from "../api.ts";
import { safe, span } from "../format.ts";
import { useSelect } from "../store.ts";
import { Problem } from "./parts.tsx";

// Before the first step: what is known already, and what makes a step.
export function NoSteps({ summary }: { summary: Summary }) {
  const { unobserved, notices, now, run } = summary;
  return (
    <section class="empty" aria-label="no data yet">
      <h1>{summary.live ? "No step has finished yet" : "No step was recorded"}</h1>
      {summary.live && (
        <p>
          The first step ends when the loop fetches its second batch. The run is {span(run.duration_s)} old.
        </p>
      )}
      {now.length > 0 && (
        <ul>
          {now.slice(0, 8).map((it) => (
            <li key={it.rank}>
              rank {it.rank} is in <b>{safe(it.phase)}</b>
              {it.since_s !== null && ` for ${span(it.since_s)}`}
              {!it.alive && ", and its process is gone"}
            </li>
          ))}
        </ul>
      )}
      {run.ranks === 0 && (
        <p>No training process was seen so far: none has imported torch and begun to train.</p>
      )}
      {unobserved.map((text) => (
        <p key={text}>Not observed: {safe(text)}</p>
      ))}
      {notices.map((text) => (
        <p key={text} class="dim">
          {safe(text)}
        </p>
      ))}
      <h2>If it stays so</h2>
      <ul>
        <li>
          <code>stepscope doctor</code> says what works on this machine.
        </li>
        <li>
          A loop without a DataLoader and an optimizer marks its steps itself:{" "}
          <code>with stepscope.trace_step(model):</code>
        </li>
      </ul>
    </section>
  );
}

export function NoRun() {
  const problem = useSelect((state) => state.run?.problem ?? null);
  const route = useSelect((state) => state.view.route);
  if (!problem) return <p class="dim wait">Loading the run</p>;
  if (problem.status === 404 && route.page === "run") {
    return (
      <div class="empty">
        <h1>No such run here</h1>
        <p>
          The server does not know “{safe(route.key)}”. It may lie in another folder, or its files are gone.
        </p>
        <p>
          <a href="#/">The runs that there are</a>
        </p>
      </div>
    );
  }
  return <Problem {...problem} />;
}

// The cookie is not the server's: it was restarted with a new token, or the address was opened without one.
export const NoEntry = () => (
  <div class="empty">
    <h1>The server does not know this browser</h1>
    <p>
      It was started anew, or this address was opened without its token. Open the address that it printed:
    </p>
    <pre>http://127.0.0.1:PORT/?token=...</pre>
  </div>
);
