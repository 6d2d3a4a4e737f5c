// Numbers and names for people.

const UNITS: [number, string][] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
];

/** Nanoseconds with three digits and a fitting unit. */
export function duration(nanoseconds: number): string {
  const [scale, unit] = UNITS.find(([scale]) => nanoseconds >= scale * 0.9995) ?? [1, "ns"];
  const value = nanoseconds / scale;
  if (unit === "ns") return `${Math.round(value)} ns`;
  return `${value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0)} ${unit}`;
}

/** A moment, precise enough to tell it from one that is `span` away. */
export function moment(nanoseconds: number, span: number): string {
  const [scale, unit] = UNITS.find(([scale]) => Math.max(nanoseconds, span) >= scale) ?? [1, "ns"];
  const digits = Math.max(0, Math.ceil(Math.log10(scale / Math.max(span, 1))) + 1);
  return `${(nanoseconds / scale).toFixed(Math.min(digits, 9))} ${unit}`;
}

export function percent(share: number): string {
  const value = share * 100;
  if (value > 0 && value < 0.05) return "<0.1%";
  return `${value.toFixed(value === 0 || value >= 9.95 ? 0 : 1)}%`;
}

export function count(number: number): string {
  return number.toLocaleString("en-US");
}

export function size(bytes: number): string {
  if (bytes < 1e3) return `${bytes} B`;
  const [scale, unit] = bytes < 1e6 ? [1e3, "kB"] : bytes < 1e9 ? [1e6, "MB"] : [1e9, "GB"];
  return `${(bytes / (scale as number)).toFixed(1)} ${unit}`;
}

/** A name from the traced program, without characters that would confuse what stands around it. */
export function clean(name: string): string {
  return name.replace(/[\p{Cc}\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069]/gu, "\ufffd");
}

/** A text of at most `most` characters, cut in the middle: names of threads often differ at their ends. */
export function shortened(text: string, most: number): string {
  const letters = [...text];
  if (letters.length <= most) return text;
  const head = Math.ceil((most - 1) / 2);
  return `${letters.slice(0, head).join("")}…${letters.slice(letters.length - (most - 1 - head)).join("")}`;
}

/** How many there are of something, with its name in the singular or the plural. */
export function plural(number: number, one: string): string {
  return `${count(number)} ${one}${number === 1 ? "" : "s"}`;
}

/** Begins with a capital letter, but leaves names as they are. */
export function capital(text: string): string {
  return text.replace(/^\p{Ll}/u, (letter) => letter.toUpperCase());
}
