// Raw numbers: every block that the charts were drawn from, and what the run was.
import type { RunData } from "../state.ts";
import type { Summary } from "../api.ts";
import { isRecorded, runPath } from "../api.ts";
import { digits, grouped, ms, NONE, safe, shell, span } from "../format.ts";
import { Section } from "./parts.tsx";

const MOST_ROWS = 200;

export function RawView({ run, summary }: { run: RunData; summary: Summary }) {
  return (
    <Section id="raw" title="Raw numbers">
      <About {...{ summary }} />
      <details>
        <summary>Steps as drawn</summary>
        <Blocks {...{ run }} />
      </details>
      <details>
        <summary>Settings</summary>
        <dl class="facts">
          {Object.entries(summary.settings).map(([name, value]) => (
            <div key={name}>
              <dt>
                <code>{safe(name)}</code>
              </dt>
              <dd>{safe(String(value))}</dd>
            </div>
          ))}
        </dl>
      </details>
      {!isRecorded && (
        <p class="dim small">
          As JSON:{" "}
          {["summary", "series", "ranks", "heatmap", "resources", "events"].map((what) => (
            <a key={what} href={runPath(run.key, what)} target="_blank" rel="noreferrer">
              {what}
            </a>
          ))}
        </p>
      )}
    </Section>
  );
}

function About({ summary }: { summary: Summary }) {
  const { run, stepscope } = summary;
  const facts: [string, string, boolean?][] = [
    ["command", shell(run.command), true],
    ["exit code", run.exit_code === null ? (run.state === "live" ? "running" : NONE) : String(run.exit_code)],
    [
      "versions",
      [
        `stepscope ${run.versions.stepscope}`,
        run.versions.python && `python ${run.versions.python}`,
        run.versions.torch && `torch ${run.versions.torch}`,
      ]
        .filter(Boolean)
        .join(", "),
    ],
    [
      "cost of looking",
      stepscope.cost_us_per_step === null
        ? "not measured"
        : `${digits(stepscope.cost_us_per_step)} µs a step on the step thread`,
    ],
    [
      "records",
      `${grouped(stepscope.records_written)} written, ${grouped(stepscope.records_dropped)} dropped`,
    ],
    ...Object.entries(summary.files).map(([name, file]): [string, string, boolean] => [
      name.replace(/_(\w+)$/, ".$1"),
      file,
      true,
    ]),
    ["next", summary.next, true],
  ];
  return (
    <>
      <dl class="facts about">
        {facts.map(([name, value, mono]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{mono ? <code>{safe(value)}</code> : safe(value)}</dd>
          </div>
        ))}
      </dl>
      {(summary.notices.length > 0 || summary.unobserved.length > 0 || summary.not_measured.length > 0) && (
        <ul class="notices">
          {summary.notices.map((text) => (
            <li key={text}>{safe(text)}</li>
          ))}
          {summary.unobserved.map((text) => (
            <li key={text}>not observed: {safe(text)}</li>
          ))}
          {summary.not_measured.map(({ what, why }) => (
            <li key={what + why}>
              not measured: {safe(what)} ({safe(why)})
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function Blocks({ run }: { run: RunData }) {
  const { series } = run;
  if (!series) return null;
  const phases = series.phases.filter((phase) => phase.ms.some((value) => (value ?? 0) > 0));
  const rows = series.count
    .map((_, at) => at)
    .slice(-MOST_ROWS)
    .reverse();
  return (
    <>
      <div class="rows tall" tabIndex={0} role="region" aria-label="blocks of steps">
        <table>
          <thead>
            <tr>
              <th scope="col">steps</th>
              <th scope="col">ended at s</th>
              <th scope="col">mean ms</th>
              <th scope="col">min ms</th>
              <th scope="col">max ms</th>
              {phases.map((phase) => (
                <th key={phase.name} scope="col">
                  {safe(phase.name)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((at) => (
              <tr key={series.first_step[at]}>
                <td>
                  {series.count[at] === 1
                    ? grouped(series.first_step[at])
                    : `${grouped(series.first_step[at])} to ${grouped(series.last_step[at])}`}
                </td>
                <td>{digits(series.time_s[at])}</td>
                <td>{ms(series.total_ms[at])}</td>
                <td>{ms(series.total_min_ms[at])}</td>
                <td>{ms(series.total_max_ms[at])}</td>
                {phases.map((phase) => (
                  <td key={phase.name}>{ms(phase.ms[at])}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {series.count.length > MOST_ROWS && (
        <p class="dim small">
          The newest {MOST_ROWS} of {grouped(series.count.length)}; zoom in for others. The run took{" "}
          {span(run.summary?.run.duration_s)}.
        </p>
      )}
    </>
  );
}
