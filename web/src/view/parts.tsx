// Small pieces that several views are made of.
import type { ComponentChildren } from "preact";
import type { Phase } from "../api.ts";
import { BUILT_IN, phaseClass } from "../chart/theme.ts";
import { duration, percent, safe } from "../format.ts";

export function Section({
  id,
  title,
  aside,
  children,
}: {
  id: string;
  title: string;
  aside?: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <section id={id} aria-labelledby={`${id}-title`}>
      <header class="title">
        <h2 id={`${id}-title`}>{title}</h2>
        {aside}
      </header>
      {children}
    </section>
  );
}

export const Badge = ({ severity, word }: { severity: string; word?: string }) => (
  <span class={`badge s-${severity}`}>{word ?? severity}</span>
);

export const Swatch = ({ name, users }: { name: string; users?: readonly string[] }) => (
  <span class={`swatch ${phaseClass(name, users)}`} aria-hidden="true" />
);

const LEAST_SHARE = 0.0005; // as on the card

// One step as one bar.
export function PhaseBar({
  phases,
  users,
  total,
  label,
}: {
  phases: readonly [string, number][];
  users?: readonly string[];
  total: number;
  label: string;
}) {
  const parts = phases.filter(([, value]) => total > 0 && value / total >= LEAST_SHARE);
  return (
    <div class="bar" role="img" aria-label={label}>
      {parts.map(([name, value]) => (
        <span
          key={name}
          class={phaseClass(name, users)}
          style={{ flexGrow: String(value) }}
          title={`${safe(name)} ${duration(value)}`}
        >
          {value / total > 0.07 ? <i>{safe(name)}</i> : null}
        </span>
      ))}
    </div>
  );
}

export const usersOf = (phases: Record<string, Phase>) =>
  Object.keys(phases).filter((name) => !BUILT_IN.includes(name));

// The shares of a run as a bar, for lists.
export function MiniBar({ shares }: { shares: Record<string, number | null> }) {
  const parts = Object.entries(shares).filter((it): it is [string, number] => it[1] !== null && it[1] > 0);
  const users = parts.map(([name]) => name).filter((name) => !BUILT_IN.includes(name));
  if (parts.length === 0) return <span>-</span>;
  const label = parts.map(([name, share]) => `${safe(name)} ${percent(share)}`).join(", ");
  return (
    <div class="bar mini" role="img" aria-label={label} title={label}>
      {parts.map(([name, share]) => (
        <span key={name} class={phaseClass(name, users)} style={{ flexGrow: String(share) }} />
      ))}
    </div>
  );
}

export function Spark({ values }: { values: readonly (number | null)[] }) {
  const known = values.filter((value): value is number => value !== null);
  if (known.length < 2) return <span class="none">-</span>;
  const [least, most] = [Math.min(...known), Math.max(...known)];
  // From 0 the line of a steady rank is flat, as it is.
  const low = Math.min(least, most * 0.5);
  const range = most - low || 1;
  const points = values
    .map((value, at) =>
      value === null
        ? null
        : `${((at / (values.length - 1)) * 78 + 1).toFixed(1)},${(15 - ((value - low) / range) * 13).toFixed(1)}`,
    )
    .filter(Boolean)
    .join(" ");
  return (
    <svg
      class="spark"
      viewBox="0 0 80 16"
      role="img"
      aria-label={`trend from ${duration(known[0])} to ${duration(known.at(-1))}`}
    >
      <polyline points={points} />
    </svg>
  );
}

export function Choice<T extends string>({
  name,
  options,
  value,
  onChoose,
}: {
  name: string;
  options: readonly (readonly [T, string])[];
  value: T;
  onChoose: (value: T) => void;
}) {
  return (
    <div class="choice" role="group" aria-label={name}>
      {options.map(([option, word]) => (
        <button key={option} type="button" aria-pressed={option === value} onClick={() => onChoose(option)}>
          {word}
        </button>
      ))}
    </div>
  );
}

export const Problem = ({ text, hint }: { text: string; hint: string }) => (
  <div class="problem" role="alert">
    <p>{safe(text)}</p>
    {hint && (
      <p class="dim">
        hint: <code>{safe(hint)}</code>
      </p>
    )}
  </div>
);
