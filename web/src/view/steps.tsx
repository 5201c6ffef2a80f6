// Where the step goes: over the steps, on average, and in the one under the crosshair (else the newest).
import type { Phase, Series, Summary } from "../api.ts";
import { Lane } from "../chart/lane.tsx";
import { StepsChart } from "../chart/steps.tsx";
import { act } from "../control.ts";
import { duration, ms, percent, readable, safe, steps as stepsText } from "../format.ts";
import { blockOf } from "../series.ts";
import { shown, type RunData } from "../state.ts";
import { useSelect } from "../store.ts";
import { Choice, PhaseBar, Section, Swatch, usersOf } from "./parts.tsx";

const CHART_PX = 250;
const NO_EVENTS: never[] = [];

export function StepsView({ run, summary }: { run: RunData; summary: Summary }) {
  const view = useSelect((state) => state.view);
  const dark = useSelect((state) => state.dark);
  useSelect((state) => state.run?.series);
  const domain = useSelect((state) => {
    const span = shown(state);
    return span ? `${span.from}/${span.to}` : "";
  });
  const { series } = run;
  if (!series || domain === "") return null;
  const [from = 0, to = 1] = domain.split("/").map(Number);
  const events = run.events ?? NO_EVENTS;
  return (
    <Section id="steps" title="Where the step goes" aside={<RangeChoice series={series} rank={view.rank} />}>
      <div class="split">
        <div class="plots">
          <StepsChart
            {...{ series, events, dark }}
            domain={{ from, to }}
            only={view.phase}
            full={view.full}
            height={CHART_PX}
          />
          <Lane {...{ events, dark }} domain={{ from, to }} />
        </div>
        <Breakdown {...{ series, summary }} only={view.phase} rank={view.rank} />
      </div>
    </Section>
  );
}

function RangeChoice({ series, rank }: { series: Series; rank: number | null }) {
  const range = useSelect((state) => state.view.range);
  const value = range.kind === "last" ? "last" : range.kind === "all" ? "all" : "span";
  return (
    <div class="aside">
      {rank !== null && (
        <button
          type="button"
          class="chip"
          onClick={() => act().look({ rank: null })}
          title="show the job again"
        >
          rank {rank} alone ✕
        </button>
      )}
      {range.kind === "span" && (
        <button type="button" class="chip" onClick={() => act().zoomBack()} title="double click: back">
          {stepsText(range.from, range.to)} ✕
        </button>
      )}
      <Choice
        name="steps shown"
        value={value}
        options={[
          ["all", "all steps"],
          ["last", "newest 300"],
        ]}
        onChoose={(to) => act().range(to === "last" ? { kind: "last", steps: 300 } : { kind: "all" })}
      />
      <span class="sr">{series.count.length} blocks of steps</span>
    </div>
  );
}

function Breakdown({
  series,
  summary,
  only,
  rank,
}: {
  series: Series;
  summary: Summary;
  only: string | null;
  rank: number | null;
}) {
  const block = useSelect((state) =>
    state.cursor === null || !state.run?.series ? -1 : blockOf(state.run.series.first_step, state.cursor),
  );
  const users = usersOf(summary.phases);
  const at = block >= 0 && block < series.count.length ? block : series.count.length - 1;
  const here = new Map(series.phases.map((phase) => [phase.name, phase.ms[at] ?? null]));
  // Of one rank alone the averages are in its row of summary.ranks; a phase without time is left out of the table.
  const own =
    rank === null
      ? null
      : (
          summary as Summary & {
            ranks?: { rank: number; mean_ms: number | null; phases: Record<string, Phase> }[];
          }
        ).ranks?.find((it) => it.rank === rank);
  const phases = own?.phases ?? summary.phases;
  const mean_ms = own ? own.mean_ms : summary.steps.mean_ms;
  const rows = Object.entries(phases).filter(
    ([name, phase]) =>
      (phase.mean_ms ?? 0) > 0 || (here.get(name) ?? 0) > 0 || (!phase.measured && phase.applicable),
  );
  const absent = Object.entries(phases).filter(([name]) => !rows.some(([it]) => it === name));
  const where = at < 0 ? "now" : stepsText(series.first_step[at]!, series.last_step[at]!);
  const total = at < 0 ? null : (series.total_ms[at] ?? null);
  const numbers = (list: Iterable<readonly [string, number | null]>) =>
    [...list].filter((it): it is [string, number] => it[1] !== null);
  const host =
    rows.some(([, phase]) => phase.clock === "host") &&
    summary.not_measured.some(({ what }) => what.includes("device"));
  return (
    <div class="side breakdown">
      <table>
        <caption class="sr">Phases of a step: share and mean over the steady steps, and at {where}</caption>
        <thead>
          <tr>
            <th scope="col">phase</th>
            <th scope="col">share</th>
            <th scope="col">mean ms</th>
            <th scope="col" class="here">
              {block >= 0 ? where : "newest"} ms
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map(([name, phase]) => (
            <tr
              key={name}
              data-phase={name}
              class={only === name ? "only" : undefined}
              title={phase.note ?? undefined}
            >
              <th scope="row">
                <button
                  type="button"
                  aria-pressed={only === name}
                  onClick={() => act().look({ phase: only === name ? null : name })}
                >
                  <Swatch {...{ name, users }} />
                  {safe(name)}
                </button>
              </th>
              <td>{percent(phase.share)}</td>
              <td>{ms(phase.mean_ms)}</td>
              <td>{ms(here.get(name) ?? null)}</td>
            </tr>
          ))}
          <tr class="sum" data-phase="step">
            <th scope="row">step</th>
            <td />
            <td>{ms(mean_ms)}</td>
            <td>{ms(total)}</td>
          </tr>
        </tbody>
      </table>
      <div class="bars">
        <span>mean</span>
        <PhaseBar
          phases={numbers(rows.map(([name, phase]) => [name, phase.mean_ms] as const))}
          {...{ users }}
          total={mean_ms ?? 0}
          label={`Mean step: ${rows.map(([name, phase]) => `${safe(name)} ${percent(phase.share)}`).join(", ")}`}
        />
        <span>{block >= 0 ? "here" : "now"}</span>
        <PhaseBar
          phases={numbers(here)}
          {...{ users }}
          total={total ?? 0}
          label={`${where}: ${duration(total)}`}
        />
      </div>
      <Parts {...{ summary }} />
      {absent.length > 0 && (
        <p class="dim small">
          No time in{" "}
          {absent
            .filter(([, it]) => it.applicable)
            .map(([name]) => safe(name))
            .join(", ") || "-"}
          {absent.some(([, it]) => !it.applicable) &&
            `. Not applicable: ${absent
              .filter(([, it]) => !it.applicable)
              .map(([name]) => safe(name))
              .join(", ")}`}
          .
        </p>
      )}
      {host && <p class="dim small">Times are of the host; device times were not recorded.</p>}
    </div>
  );
}

function Parts({ summary }: { summary: Summary }) {
  const parts = Object.entries(summary.parts).filter(([, part]) => (part.mean_ms ?? 0) > 0);
  if (parts.length === 0) return null;
  return (
    <p class="dim small">
      Of which {parts.map(([name, part]) => `${readable(name)} ${duration(part.mean_ms)}`).join(", ")}.
    </p>
  );
}
