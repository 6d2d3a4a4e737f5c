// How busy the lock is in each column of pixels.
import { meanCounts } from "../series";
import type { Watched } from "./scene";

export interface Counts {
  held: Float64Array;
  waiting: Float64Array;
}

/** Counts, which are kept until others are wanted: most frames want the same again. */
export function rememberedCounts(): (watched: Watched, from: number, to: number, columns: number) => Counts {
  let last: string | null = null;
  let counts: Counts;
  return ({ lock, holds, waits }, from, to, columns) => {
    const key = [lock.id, from, to, columns].join();
    if (key !== last) {
      last = key;
      counts = { held: meanCounts(holds, from, to, columns), waiting: meanCounts(waits, from, to, columns) };
    }
    return counts;
  };
}

/** The top of a scale on which all of some counts fit. */
export function highest(counts: Float64Array): number {
  return Math.max(1, counts.reduce((a, b) => Math.max(a, b), 0));
}
