// The events as a list: what the marks on the charts are.
import { useState } from "preact/hooks";
import type { RunEvent } from "../api.ts";
import { KIND_NAMES, KINDS } from "../chart/lane.tsx";
import { act } from "../control.ts";
import { duration, grouped, NONE, safe, span, steps as stepsText } from "../format.ts";
import type { RunData } from "../state.ts";
import { Badge, Section } from "./parts.tsx";

const FIRST = 12;

export function EventsView({ run }: { run: RunData }) {
  const [kind, setKind] = useState<RunEvent["kind"] | null>(null);
  const [all, setAll] = useState(false);
  const events = run.events ?? [];
  const kinds = KINDS.map((it) => [it, events.filter((event) => event.kind === it).length] as const).filter(
    ([, count]) => count > 0,
  );
  const listed = events.filter((event) => kind === null || event.kind === kind);
  // The newest first: what happens now is why somebody looks.
  const rows = [...listed].reverse().slice(0, all ? undefined : FIRST);
  return (
    <Section
      id="events"
      title="Events"
      aside={
        <div class="aside choice" role="group" aria-label="kinds of events">
          {kinds.length > 1 && (
            <button type="button" aria-pressed={kind === null} onClick={() => setKind(null)}>
              all {grouped(events.length)}
            </button>
          )}
          {kinds.map(([it, count]) => (
            <button
              key={it}
              type="button"
              aria-pressed={kind === it}
              onClick={() => setKind(kind === it ? null : it)}
            >
              {KIND_NAMES[it]} {grouped(count)}
            </button>
          ))}
        </div>
      }
    >
      {events.length === 0 ? (
        <p class="dim">
          None yet: no epoch began anew, nothing was saved, validated or compiled, and nothing was found over
          time.
        </p>
      ) : (
        <div class="rows">
          <table class="events">
            <thead>
              <tr>
                <th scope="col" class="text">
                  kind
                </th>
                <th scope="col" class="text">
                  step
                </th>
                <th scope="col">time</th>
                <th scope="col">took</th>
                <th scope="col">rank</th>
                <th scope="col" class="text wide">
                  what
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map((event, index) => (
                <tr key={index}>
                  <td class="text">
                    <span class={`swatch e-${event.kind}`} aria-hidden="true" />{" "}
                    {KIND_NAMES[event.kind] ?? event.kind}
                  </td>
                  <td class="text">
                    {event.step === null ? (
                      NONE
                    ) : (
                      <button type="button" class="link" onClick={() => show(event)}>
                        {stepsText(event.step, event.last_step).replace(/^steps? /, "")}
                      </button>
                    )}
                  </td>
                  <td>{span(event.time_s)}</td>
                  <td>{duration(event.duration_ms)}</td>
                  <td>{event.rank ?? NONE}</td>
                  <td class="text wide">
                    {event.severity && <Badge severity={event.severity} />}{" "}
                    {event.code && <b class="code">{safe(event.code)} </b>}
                    {safe(event.text)}
                    {event.kind === "finding" && event.open === false && <span class="dim"> (over)</span>}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {listed.length > FIRST && (
        <button type="button" class="link" onClick={() => setAll(!all)}>
          {all ? "fewer" : `all ${grouped(listed.length)}`}
        </button>
      )}
    </Section>
  );
}

const AROUND = 20; // steps shown before and after

function show(event: RunEvent): void {
  const last = event.last_step ?? event.step!;
  act().zoom(event.step! - AROUND, last + 1 + AROUND);
}
