// The page as a function of the state.
import { useSelect } from "../store.ts";
import { CompareView } from "./compare.tsx";
import { NoEntry, NoRun, NoSteps } from "./empty.tsx";
import { EventsView } from "./events.tsx";
import { Header } from "./header.tsx";
import { Help } from "./help.tsx";
import { HostView } from "./host.tsx";
import { RanksView } from "./ranks.tsx";
import { RawView } from "./raw.tsx";
import { RunsView } from "./runs.tsx";
import { StepsView } from "./steps.tsx";
import { Verdict } from "./verdict.tsx";

export function App() {
  const page = useSelect((state) => state.view.route.page);
  const denied = useSelect(
    (state) =>
      state.runs_problem?.status === 401 ||
      state.run?.problem?.status === 401 ||
      state.compared?.problem?.status === 401,
  );
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(event) => (event.preventDefault(), document.getElementById("main")?.focus())}
      >
        to the content
      </a>
      <Header />
      <main id="main" tabIndex={-1}>
        {denied && <NoEntry />}
        {page === "runs" && <RunsView />}
        {page === "run" && <RunView />}
        {page === "compare" && <CompareView />}
      </main>
      <Help />
    </>
  );
}

function RunView() {
  const run = useSelect((state) => state.run);
  if (!run?.summary) return run?.problem?.status === 401 ? null : <NoRun />;
  const { summary } = run;
  if (summary.steps.count === 0 && !run.series?.first_step.length) return <NoSteps {...{ summary }} />;
  return (
    <>
      <Verdict />
      <StepsView {...{ run, summary }} />
      <RanksView {...{ run, summary }} />
      <HostView {...{ run, summary }} />
      <EventsView {...{ run }} />
      <RawView {...{ run, summary }} />
    </>
  );
}
