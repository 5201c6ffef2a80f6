// Host and GPU: what the run used of its machines, over time and as figures with their limits.
import { useMemo } from "preact/hooks";
import type { Maybe, ResourceSeries, Summary } from "../api.ts";
import { HostChart } from "../chart/host.tsx";
import { lineClass } from "../chart/theme.ts";
import { readable, safe, withUnit } from "../format.ts";
import { shown, type RunData } from "../state.ts";
import { useSelect } from "../store.ts";
import { Section } from "./parts.tsx";

const NO_EVENTS: never[] = [];

const CHARTS: readonly { title: string; names: readonly string[]; unit: string }[] = [
  { title: "CPU, cores busy", names: ["cpu_cores"], unit: "cores" },
  { title: "Memory", names: ["memory_bytes", "worker_memory_bytes"], unit: "bytes" },
  { title: "GPU memory", names: ["gpu_memory_bytes"], unit: "bytes" },
  { title: "Share of the time waiting for a core", names: ["cpu_wait_share"], unit: "share" },
];

const lineName = (line: ResourceSeries["series"][number]) =>
  `${line.rank !== null ? `rank ${line.rank}` : (line.node ?? "job")}${line.name.startsWith("worker") ? ", workers" : ""}`;

export function HostView({ run, summary }: { run: RunData; summary: Summary }) {
  const { resources, series } = run;
  const dark = useSelect((state) => state.dark);
  const domain = useSelect((state) => {
    const span = shown(state);
    return span ? `${span.from}/${span.to}` : "";
  });
  const [from = 0, to = 1] = domain.split("/").map(Number);
  const charts = useMemo(
    () =>
      CHARTS.map((chart) => ({
        ...chart,
        lines: (resources?.series ?? []).filter(
          (line) => chart.names.includes(line.name) && line.values.some((value) => value !== null),
        ),
      })).filter((chart) => chart.lines.length > 0),
    [resources],
  );
  const limits: Record<string, Maybe> = {
    cores: summary.resources["cpu"]?.limit ?? null,
    bytes: summary.resources["memory"]?.limit ?? null,
  };
  return (
    <Section id="host" title="Host and GPU">
      <div class="split">
        <div class="plots">
          {resources && series && domain !== ""
            ? charts.map((chart) => (
                <figure key={chart.title}>
                  <figcaption>
                    {chart.title}
                    <span class="keys">
                      {chart.lines.slice(0, 8).map((line, index) => (
                        <span key={lineName(line)}>
                          <span class={`swatch ${lineClass(index)}`} aria-hidden="true" />{" "}
                          {safe(lineName(line))}
                        </span>
                      ))}
                      {chart.lines.length > 8 && <span>and {chart.lines.length - 8} more</span>}
                    </span>
                  </figcaption>
                  <HostChart
                    {...chart}
                    {...{ dark }}
                    time_s={resources.time_s}
                    steps={series}
                    domain={{ from, to }}
                    limit={summary.run.nodes === 1 ? (limits[chart.unit] ?? null) : null}
                    events={run.events ?? NO_EVENTS}
                  />
                </figure>
              ))
            : null}
          {charts.length === 0 && <p class="dim">No reading over time yet.</p>}
        </div>
        <div class="side">
          <Figures {...{ summary }} />
        </div>
      </div>
    </Section>
  );
}

const TITLES: Record<string, string> = {
  cpu: "CPU of the run",
  cpu_machine: "CPU in use",
  memory: "memory of the run",
  memory_in_use: "memory in use",
};

function Figures({ summary }: { summary: Summary }) {
  const rows = Object.entries(summary.resources).filter(
    (it): it is [string, Summary["resources"][string]] =>
      it[0] !== "gpus" && it[1] !== null && "measured" in it[1],
  );
  const gpus = (summary.resources as Record<string, unknown>)["gpus"];
  const missing = [
    ...rows
      .filter(([, it]) => !it.measured)
      .map(([name, it]) => [TITLES[name] ?? readable(name), it.note] as const),
  ];
  const gpu = gpus as { measured?: boolean; note?: string | null } | undefined;
  return (
    <>
      <table class="figures">
        <caption class="sr">Resources: average, peak and limit</caption>
        <thead>
          <tr>
            <th scope="col"> </th>
            <th scope="col">average</th>
            <th scope="col">peak</th>
            <th scope="col">limit</th>
          </tr>
        </thead>
        <tbody>
          {rows
            .filter(([, it]) => it.measured)
            .map(([name, it]) => (
              <tr key={name} data-resource={name} title={it.note ?? undefined}>
                <th scope="row">{TITLES[name] ?? readable(name)}</th>
                <td>{withUnit(it.average, it.unit)}</td>
                <td>{withUnit(it.peak, it.unit)}</td>
                <td>{withUnit(it.limit, it.unit)}</td>
              </tr>
            ))}
        </tbody>
      </table>
      {gpu && gpu.measured === false && missing.push(["gpu", gpu.note ?? null]) > 0 && null}
      {missing.length > 0 && (
        <ul class="dim small missing">
          {missing.map(([name, note]) => (
            <li key={name}>
              {name}: not measured{note ? ` (${safe(note)})` : ""}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
