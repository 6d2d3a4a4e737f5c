// What there is to say about a function in a flame graph.
import { clean, duration, percent } from "../format";
import type { Node } from "./tree";

const MOST_LINES = 4;

export function nameOf({ parent, function: called, lines }: Node): string {
  if (called) return clean(called.name);
  if (!parent) return "all";
  return lines.size === 1 ? `… ${[...lines.keys()][0]} frames left out` : "… frames left out";
}

/** The file with the lines that took longest. */
export function placeOf({ function: called, lines, total }: Node): string {
  if (!called?.file) return "";
  const longest = [...lines].filter(([line]) => line > 0).sort((a, b) => b[1] - a[1]);
  const file = clean(called.file);
  if (longest.length <= 1) return longest.length === 1 ? `${file}:${longest[0][0]}` : file;
  const shown = longest.slice(0, MOST_LINES).map(([line, time]) => `${line} (${percent(time / total)})`);
  return `${file}, lines ${shown.join(", ")}${longest.length > MOST_LINES ? ", …" : ""}`;
}

/** The time, its share of all, and how much of it is the function's own. */
export function timesOf({ parent, total, self }: Node, all: number): string {
  if (!parent) return duration(total);
  const own = self === total ? "" : self > 0 ? `, ${duration(self)} in itself` : ", none in itself";
  return `${duration(total)} (${percent(total / all)})${own}`;
}
