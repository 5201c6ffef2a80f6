// Two runs side by side. What is different, and whether that is real, is the server's word (GET /v1/compare).
import type { Change, Difference, Maybe, RankChange, Summary } from "../api.ts";
import { duration, grouped, ms, NONE, percent, rate, safe, span } from "../format.ts";
import { VIEW } from "../state.ts";
import { useSelect } from "../store.ts";
import * as url from "../url.ts";
import { Badge, PhaseBar, Problem, Swatch, usersOf } from "./parts.tsx";

export function CompareView() {
  const compared = useSelect((state) => state.compared);
  const route = useSelect((state) => state.view.route);
  if (!compared || route.page !== "compare") return null;
  const { a, b, result, problem } = compared;
  if (!a || !b) return problem ? <Problem {...problem} /> : <p class="dim wait">Loading both runs</p>;
  const users = [...new Set([...usersOf(a.phases), ...usersOf(b.phases)])];
  const longest = Math.max(a.steps.mean_ms ?? 0, b.steps.mean_ms ?? 0);
  const names = [...new Set([...Object.keys(a.phases), ...Object.keys(b.phases)])].filter(
    (name) => (a.phases[name]?.mean_ms ?? 0) > 0 || (b.phases[name]?.mean_ms ?? 0) > 0,
  );
  return (
    <section id="compare" aria-labelledby="compare-title">
      <h1 id="compare-title">Two runs side by side</h1>
      {result && <Verdict {...result} />}
      {problem && <Problem {...problem} />}
      <div class="pair">
        <One letter="A" summary={a} runKey={route.a} {...{ users, longest }} />
        <One letter="B" summary={b} runKey={route.b} {...{ users, longest }} />
      </div>
      <div class="rows">
        <table class="compared">
          <thead>
            <tr>
              <th scope="col" class="text">
                mean ms
              </th>
              <th scope="col">A</th>
              <th scope="col">B</th>
              <th scope="col">A share</th>
              <th scope="col">B share</th>
              <th scope="col">change</th>
              <th scope="col">{result ? `${percent(result.level)} interval` : "interval"}</th>
              <th scope="col" class="text" />
            </tr>
          </thead>
          <tbody>
            {names.map((name) => (
              <tr key={name}>
                <th scope="row" class="text">
                  <Swatch {...{ name, users }} /> {safe(name)}
                </th>
                <td>{ms(a.phases[name]?.mean_ms)}</td>
                <td>{ms(b.phases[name]?.mean_ms)}</td>
                <td>{percent(a.phases[name]?.share)}</td>
                <td>{percent(b.phases[name]?.share)}</td>
                <ChangeCells change={result?.phases[name]} />
              </tr>
            ))}
            <tr class="sum">
              <th scope="row" class="text">
                step
              </th>
              <td>{ms(a.steps.mean_ms)}</td>
              <td>{ms(b.steps.mean_ms)}</td>
              <td />
              <td />
              <ChangeCells change={result?.step} />
            </tr>
          </tbody>
        </table>
      </div>
      {result && <RankChanges {...result} />}
    </section>
  );
}

const MOST_RANKS = 8;

// Where the ranks did not change alike: those that the change comes from, else those that changed most.
function RankChanges({ ranks, from_ranks, level }: Difference) {
  if (ranks.length < 2) return null;
  const from = new Set(from_ranks);
  const size = ({ rank, own }: RankChange) => (from.has(rank) ? 1e12 : 0) + Math.abs(own.change_ms ?? 0);
  const rows = [...ranks].sort((a, b) => size(b) - size(a)).slice(0, MOST_RANKS);
  return (
    <div class="rows">
      <h2>Ranks, largest change first</h2>
      <table class="compared ranks-changed">
        <thead>
          <tr>
            <th scope="col">rank</th>
            <th scope="col" class="text">
              node
            </th>
            <th scope="col">own change, ms</th>
            <th scope="col">{`${percent(level)} interval`}</th>
            <th scope="col" class="text" />
            <th scope="col" class="text">
              phase
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ rank, node, own, phase, phase_change_ms }) => (
            <tr key={rank} class={from.has(rank) ? "from" : undefined}>
              <th scope="row">{rank}</th>
              <td class="text">{safe(node ?? NONE)}</td>
              <ChangeCells change={own} />
              <td class="text">{phase === null ? NONE : `${safe(phase)} ${signed(phase_change_ms)}`}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {ranks.length > rows.length && (
        <p class="dim small">
          {grouped(rows.length)} of {grouped(ranks.length)} ranks
        </p>
      )}
    </div>
  );
}

function Verdict({ verdict, remarks }: Difference) {
  return (
    <div class="difference">
      <p>
        <b class="code">{verdict.code}</b> {safe(verdict.title)}
        {verdict.from && <span class="dim"> from {safe(verdict.from)}</span>}
      </p>
      {remarks.map(({ text, obstacle }) => (
        <p key={text} class="dim">
          {obstacle !== "remark" && <b>not alike: </b>}
          {safe(text)}
        </p>
      ))}
    </div>
  );
}

const signed = (value: Maybe) => (value === null ? NONE : `${value < 0 ? "-" : "+"}${ms(Math.abs(value))}`);

// What is real is the server's word.
function ChangeCells({ change }: { change: Change | undefined }) {
  const known = change && change.change_ms !== null;
  return (
    <>
      <td>{known ? signed(change.change_ms) : NONE}</td>
      <td>{known ? `${signed(change.low_ms)} to ${signed(change.high_ms)}` : NONE}</td>
      <td class="text">{known ? change.real ? <b>real</b> : <span class="dim">noise</span> : ""}</td>
    </>
  );
}

function One({
  letter,
  summary,
  runKey,
  users,
  longest,
}: {
  letter: string;
  summary: Summary;
  runKey: string;
  users: string[];
  longest: number;
}) {
  const { verdict, steps, throughput, run } = summary;
  const total = steps.mean_ms ?? 0;
  const phases = Object.entries(summary.phases).filter(([, it]) => (it.mean_ms ?? 0) > 0);
  return (
    <article>
      <h2>
        <span class="letter">{letter}</span>{" "}
        <a href={url.format({ ...VIEW, route: { page: "run", key: runKey } })}>{safe(run.name)}</a>
      </h2>
      <p>
        <Badge severity={verdict.severity} /> <b class="code">{safe(verdict.code)}</b> {safe(verdict.title)}
      </p>
      {/* Both bars on one scale: the longer step is the whole width. */}
      <div class="scaled" style={{ width: longest > 0 ? `${(100 * total) / longest}%` : "0" }}>
        <PhaseBar
          phases={phases.map(([name, it]) => [name, it.mean_ms!])}
          {...{ users, total }}
          label={`Mean step of ${letter}: ${duration(steps.mean_ms)}`}
        />
      </div>
      <dl class="numbers">
        {(
          [
            ["step, mean", duration(steps.mean_ms)],
            ["median", duration(steps.median_ms)],
            ["samples/s", rate(throughput.samples_per_s)],
            ["steps", grouped(steps.count)],
            ["ranks", grouped(run.ranks)],
            ["duration", span(run.duration_s)],
          ] as const
        ).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </article>
  );
}
