// Colours of the charts, read from style/colours.css, so that a colour is written down once.
//
// Invariant: a phase has one colour in every chart and table of a theme; a user's phases take the spare ones in order.

const SPARE = 6;

export const BUILT_IN = [
  "input",
  "h2d",
  "forward",
  "backward",
  "sync",
  "optimizer",
  "checkpoint",
  "validation",
  "compile",
  "gc",
  "profiler",
  "other",
];

// The class that colours it; `users` are the user's phases in their order.
export function phaseClass(name: string, users: readonly string[] = []): string {
  if (BUILT_IN.includes(name)) return `p-${name}`;
  return `p-user${Math.max(0, users.indexOf(name)) % SPARE}`;
}

export const lineClass = (index: number) => `line${index % 8}`;

let cached: { dark: boolean; colours: Map<string, string> } | null = null;

// The value of a custom property; canvases cannot read them.
export function colour(name: string, dark: boolean): string {
  if (cached?.dark !== dark) cached = { dark, colours: new Map() };
  let value = cached.colours.get(name);
  if (value === undefined) {
    value = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
    cached.colours.set(name, value);
  }
  return value;
}

// 256 colours from least to most, as bytes; the same steps of lightness in both themes.
export function ramp(dark: boolean): Uint8ClampedArray {
  const stops = [0, 1, 2, 3, 4].map((stop) => bytesOf(colour(`heat${stop}`, dark)));
  const out = new Uint8ClampedArray(256 * 3);
  for (let i = 0; i < 256; i += 1) {
    const at = (i / 255) * (stops.length - 1);
    const low = Math.min(Math.floor(at), stops.length - 2);
    for (let c = 0; c < 3; c += 1) {
      out[i * 3 + c] = stops[low]![c]! + (stops[low + 1]![c]! - stops[low]![c]!) * (at - low);
    }
  }
  return out;
}

const bytesOf = (hex: string) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
