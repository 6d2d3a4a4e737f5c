// How busy the lock is in each column of pixels.
import { meanCounts } from "../series";
import type { Watched } from "./scene";

export interface Counts {
  held: Float64Array;
  waiting: Float64Array;
}

/** Keeps the counts that were wanted last: most frames want them again. */
export class RememberedCounts {
  private key: string | null = null;
  private counts!: Counts;

  of({ lock, holds, waits }: Watched, from: number, to: number, columns: number): Counts {
    const key = [lock.id, from, to, columns].join();
    if (key !== this.key) {
      this.key = key;
      this.counts = { held: meanCounts(holds, from, to, columns), waiting: meanCounts(waits, from, to, columns) };
    }
    return this.counts;
  }
}

/** The top of a scale on which all of some counts fit. */
export function highest(counts: Float64Array): number {
  return Math.max(1, counts.reduce((a, b) => Math.max(a, b), 0));
}
