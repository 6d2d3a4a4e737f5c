// How busy the lock is in each column of pixels.
import { meanCounts } from "../series";
import type { Watched } from "./scene";

export interface Counts {
  held: Float64Array;
  waiting: Float64Array;
}

/** Counts, which are kept until others of the same lock are wanted: most frames want the same again. */
export function rememberedCounts(): (watched: Watched, from: number, to: number, columns: number) => Counts {
  const kept = new Map<Watched, { key: string; counts: Counts }>();
  return (watched, from, to, columns) => {
    const key = [from, to, columns].join();
    const last = kept.get(watched);
    if (last?.key === key) return last.counts;
    const { holds, waits } = watched;
    const counts = { held: meanCounts(holds, from, to, columns), waiting: meanCounts(waits, from, to, columns) };
    kept.set(watched, { key, counts });
    return counts;
  };
}

/** The top of a scale on which all of some counts fit. */
export function highest(counts: Float64Array): number {
  return Math.max(1, counts.reduce((a, b) => Math.max(a, b), 0));
}
