// What run this is, how fresh the page is, and what can be done about it. The state is always a word.
import { useEffect } from "preact/hooks";
import { act } from "../control.ts";
import { copyLink } from "../keys.ts";
import { counted, grouped, safe, shell } from "../format.ts";
import { liveness, VIEW, type Liveness } from "../state.ts";
import { useSelect } from "../store.ts";
import * as url from "../url.ts";

export function Header() {
  const view = useSelect((state) => state.view);
  const run = useSelect((state) => state.run?.summary ?? null);
  const theme = useSelect((state) => state.theme);
  const several = useSelect((state) => (state.runs?.length ?? 0) > 1);
  const said = useSelect((state) => state.said);
  return (
    <header class="top">
      <a
        class="brand"
        href={url.format({ ...VIEW, route: { page: "runs" } })}
        title={several ? "all runs" : undefined}
      >
        Stepscope
      </a>
      {view.route.page === "run" && (
        <div class="run">
          <b>{safe(run?.run.name ?? "")}</b>
          <code title={run ? safe(shell(run.run.command)) : ""}>
            {run ? safe(shell(run.run.command)) : ""}
          </code>
        </div>
      )}
      {view.route.page === "run" && <Status />}
      <span class="said" role="status">
        {said}
      </span>
      <nav aria-label="page">
        {view.route.page !== "runs" && several && (
          <a class="button" href={url.format({ ...VIEW, route: { page: "runs" } })}>
            runs
          </a>
        )}
        <button type="button" onClick={copyLink} title="copy the link to exactly this view (c)">
          link
        </button>
        <button
          type="button"
          title="light, dark, or as the system (t)"
          aria-label={`theme: ${theme}`}
          onClick={() => act().theme(theme === "auto" ? "light" : theme === "light" ? "dark" : "auto")}
        >
          {theme === "auto" ? "◐ auto" : theme === "light" ? "○ light" : "● dark"}
        </button>
        <button type="button" aria-label="keys" title="keys (?)" onClick={() => act().set({ help: true })}>
          ?
        </button>
      </nav>
    </header>
  );
}

function Status() {
  // As one string, so that it is drawn only when it says something else.
  const words = useSelect((state) => JSON.stringify(liveness(state)));
  const step = useSelect((state) => state.run?.newest?.step ?? state.run?.series?.last ?? null);
  const ended = useSelect((state) => state.run?.ended ?? false);
  const paused = useSelect((state) => state.paused);
  const exit = useSelect((state) => state.run?.summary?.run.exit_code ?? null);
  const is = JSON.parse(words) as Liveness;
  const code = useSelect((state) => state.run?.summary?.verdict.code ?? "");
  const name = useSelect((state) => state.run?.summary?.run.name ?? "");
  useEffect(() => {
    document.title = code ? `${code}, ${is.word}: ${safe(name)}` : "Stepscope";
  }, [code, is.word, name]);
  const detail = [
    "for_s" in is
      ? is.word === "stale"
        ? `no step for ${counted(is.for_s)}`
        : `for ${counted(is.for_s)}`
      : "",
    is.detail,
    is.word === "ended" && exit !== null ? `exit code ${exit}` : "",
    is.word === "ended" || step === null ? "" : `step ${grouped(step)}`,
  ].filter(Boolean);
  return (
    <div class="status">
      <span class={`state ${is.word.replaceAll(" ", "-")}`} data-state={is.word}>
        {is.word}
      </span>
      <span class="dim">{detail.join(", ")}</span>
      {!ended && (
        <button
          type="button"
          class="pause"
          aria-pressed={paused}
          onClick={() => act().pause(!paused)}
          title={paused ? "go on (space)" : "pause (space)"}
        >
          {paused ? "▶ go on" : "❙❙ pause"}
        </button>
      )}
    </div>
  );
}
