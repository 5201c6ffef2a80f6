// The first thing read: what is the case, how that is known, what to do. Then what else was found.
import { act } from "../control.ts";
import type { Finding, Summary } from "../api.ts";
import {
  digits,
  duration,
  grouped,
  percent,
  rate,
  readable,
  safe,
  span,
  steps as stepsText,
  withUnit,
} from "../format.ts";
import { certain } from "../state.ts";
import { useSelect } from "../store.ts";
import { Badge } from "./parts.tsx";

const FIRST_EVIDENCE = 6;

export function Verdict() {
  const summary = useSelect((state) => state.run?.summary ?? null);
  if (!summary) return null;
  const { verdict } = summary;
  const others = summary.findings.slice(1);
  return (
    <section id="verdict" class={`s-${verdict.severity}`} aria-label="verdict">
      <div class="verdict" aria-live="polite">
        <h1>
          <span class="code">{safe(verdict.code)}</span> {safe(verdict.title)}
        </h1>
        <Badge severity={verdict.severity} word={certain(verdict)} />
      </div>
      <Numbers summary={summary} />
      <div class="why">
        <Evidence finding={verdict} />
        <Advices finding={verdict} />
      </div>
      {others.length > 0 && <Others findings={others} />}
    </section>
  );
}

function Numbers({ summary }: { summary: Summary }) {
  const { steps, throughput, run } = summary;
  const items: [string, string, string, string][] = [
    [
      "mean_ms",
      "step, mean",
      duration(steps.mean_ms),
      steps.measured ? `${grouped(steps.count - steps.warmup)} steady steps` : "",
    ],
    ["median_ms", "median", duration(steps.median_ms), steps.exact ? "" : "of blocks of steps"],
    ["p95_ms", "95th percentile", duration(steps.p95_ms), ""],
    ["steps_per_s", "steps/s", rate(throughput.steps_per_s), ""],
    ["samples_per_s", "samples/s", rate(throughput.samples_per_s), ""],
    [
      "count",
      "steps",
      grouped(steps.count),
      steps.failed > 0
        ? `${grouped(steps.failed)} failed`
        : `${grouped(steps.warmup)} warm-up, ${duration(steps.warmup_mean_ms)} each`,
    ],
    [
      "ranks",
      "ranks",
      grouped(run.ranks),
      `${run.nodes === 1 ? "1 node" : `${grouped(run.nodes)} nodes`}${run.world_size > run.ranks ? `, of ${grouped(run.world_size)}` : ""}`,
    ],
    ["duration_s", "duration", span(run.duration_s), ""],
  ];
  return (
    <dl class="numbers">
      {items.map(([name, label, value, note]) => (
        <div key={name} data-number={name}>
          <dt>{label}</dt>
          <dd>{value}</dd>
          {note && <dd class="note">{note}</dd>}
        </div>
      ))}
    </dl>
  );
}

function Evidence({ finding }: { finding: Finding }) {
  const rows = finding.evidence.map(
    ({ name, value, unit }) => [readable(name), withUnit(value, unit)] as const,
  );
  const where = [
    finding.phase && ["phase", safe(finding.phase)],
    finding.cause && finding.cause !== finding.phase && ["cause", safe(finding.cause)],
    finding.rank !== null && ["rank", String(finding.rank)],
    finding.node && ["node", safe(finding.node)],
    finding.first_step !== null && ["where", stepsText(finding.first_step, finding.last_step)],
    finding.cost_ms_per_step !== null && ["cost", `${duration(finding.cost_ms_per_step)} a step`],
  ].filter((it): it is string[] => Boolean(it));
  const List = ({ items }: { items: readonly (readonly string[])[] }) => (
    <dl class="facts">
      {items.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
  return (
    <div class="evidence">
      <h3>Evidence</h3>
      <List items={[...where, ...rows.slice(0, FIRST_EVIDENCE)]} />
      {rows.length > FIRST_EVIDENCE && (
        <details>
          <summary>{rows.length - FIRST_EVIDENCE} more figures</summary>
          <List items={rows.slice(FIRST_EVIDENCE)} />
        </details>
      )}
      {finding.not_measured.length > 0 && (
        <p class="dim">Not measured: {finding.not_measured.map(safe).join("; ")}.</p>
      )}
    </div>
  );
}

function Advices({ finding }: { finding: Finding }) {
  if (finding.advice.length === 0) return null;
  return (
    <div class="advice">
      <h3>What to do</h3>
      <ol>
        {finding.advice.map((advice) => (
          <li key={advice.text}>
            <p>
              {safe(advice.text)}{" "}
              {advice.gain !== null && advice.gain > 0 && (
                <b class="gain">saves up to {percent(advice.gain)}</b>
              )}
            </p>
            <p class="dim">
              {advice.check && <>Check: {safe(advice.check)} </>}
              {advice.not_if && <>Not if: {safe(advice.not_if)}</>}
            </p>
          </li>
        ))}
      </ol>
    </div>
  );
}

function Others({ findings }: { findings: readonly Finding[] }) {
  return (
    <details class="others" open={findings.length <= 4}>
      <summary>Also found: {findings.length}</summary>
      <ul>
        {findings.map((finding, index) => (
          <li key={`${finding.code}${index}`}>
            <Badge severity={finding.severity} word={certain(finding)} />
            <span>
              <b class="code">{safe(finding.code)}</b> {safe(finding.title)}
              {finding.ended && " (over)"}
              {finding.cost_ms_per_step !== null && (
                <span class="dim"> costs {digits(finding.cost_ms_per_step)} ms a step</span>
              )}
              {finding.first_step !== null &&
                finding.last_step !== null &&
                finding.last_step > finding.first_step && (
                  <button
                    type="button"
                    class="link"
                    onClick={() => act().zoom(finding.first_step!, finding.last_step! + 1)}
                  >
                    {stepsText(finding.first_step, finding.last_step)}
                  </button>
                )}
            </span>
          </li>
        ))}
      </ul>
    </details>
  );
}
