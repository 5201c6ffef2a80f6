// Numbers as words. The same rules as the card (src/report/text.cpp), so that both read alike.
//
// Invariant: what is null reads "-".

export const NONE = "-";

const isNumber = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value);

// Three digits that matter, as the card has them: 0.241, 2.41, 38.1, 142.
export function digits(value: number | null | undefined): string {
  if (!isNumber(value)) return NONE;
  if (value === 0) return "0";
  const size = Math.abs(value);
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3);
}

// A column of milliseconds: the header says ms.
export function ms(value: number | null | undefined): string {
  return isNumber(value) && Math.abs(value) >= 9999.5 ? grouped(value) : digits(value);
}

export function duration(value: number | null | undefined): string {
  if (!isNumber(value)) return NONE;
  return Math.abs(value) < 999.5 ? `${digits(value)} ms` : `${digits(value / 1000)} s`;
}

// "12 s", "3.5 min", "2.0 h": how long something goes on.
export function span(seconds: number | null | undefined): string {
  if (!isNumber(seconds)) return NONE;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${seconds.toFixed(0)} s`;
  if (seconds < 7200) return `${(seconds / 60).toFixed(1)} min`;
  if (seconds < 172_800) return `${(seconds / 3600).toFixed(1)} h`;
  return `${(seconds / 86_400).toFixed(1)} d`;
}

// The same for a count that goes on: in whole seconds.
export const counted = (seconds: number) =>
  seconds < 120 ? `${Math.floor(Math.max(0, seconds))} s` : span(seconds);

export function percent(share: number | null | undefined): string {
  if (!isNumber(share)) return NONE;
  return `${(share * 100).toFixed(Math.abs(share) < 0.0995 && share !== 0 ? 1 : 0)} %`;
}

export function bytes(value: number | null | undefined): string {
  if (!isNumber(value)) return NONE;
  if (Math.abs(value) < 1024) return `${value.toFixed(0)} B`;
  const units = ["KB", "MB", "GB", "TB"];
  let size = value / 1024;
  let at = 0;
  while (Math.abs(size) >= 999.5 && at + 1 < units.length) {
    size /= 1024;
    at += 1;
  }
  return `${size.toFixed(Math.abs(size) < 9.95 ? 1 : 0)} ${units[at]}`;
}

export function grouped(value: number | null | undefined): string {
  return isNumber(value) ? value.toFixed(0).replace(/\B(?=(\d{3})+$)/g, ",") : NONE;
}

export function rate(value: number | null | undefined): string {
  return isNumber(value) ? (value >= 1000 ? grouped(value) : digits(value)) : NONE;
}

// A value with the unit that the API gave it.
export function withUnit(value: number | null | undefined, unit: string): string {
  if (!isNumber(value)) return NONE;
  switch (unit) {
    case "ms":
      return duration(value);
    case "s":
      return span(value);
    case "share":
      return percent(value);
    case "bytes":
      return bytes(value);
    case "bytes/s":
      return `${bytes(value)}/s`;
    case "cores":
      return `${value.toFixed(value < 9.95 ? 1 : 0)} ${unit}`;
    case "":
      return Number.isInteger(value) ? grouped(value) : digits(value);
    default:
      return `${Number.isInteger(value) ? grouped(value) : digits(value)} ${unit}`;
  }
}

const UNITS_IN_NAMES = /_(ms|s|bytes|share|bps|cores)$/;

// "input_ms" reads "input": its value carries the unit.
export const readable = (name: string) => name.replace(UNITS_IN_NAMES, "").replaceAll("_", " ");

export function steps(first: number | null, last: number | null): string {
  if (first === null) return NONE;
  return last === null || last === first
    ? `step ${grouped(first)}`
    : `steps ${grouped(first)} to ${grouped(last)}`;
}

// "2026-03-04 10:11", in the reader's own time zone.
export function clock(utc: string | null): string {
  if (utc === null) return NONE;
  const at = new Date(utc);
  if (Number.isNaN(at.getTime())) return NONE;
  const two = (part: number) => String(part).padStart(2, "0");
  return (
    `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ` +
    `${two(at.getHours())}:${two(at.getMinutes())}`
  );
}

// Names come from strangers: control characters and direction marks are shown, not obeyed.
export const safe = (text: string) =>
  text.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");

// An argument vector as it would be typed.
export const shell = (words: string[]) =>
  words
    .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`))
    .join(" ");
