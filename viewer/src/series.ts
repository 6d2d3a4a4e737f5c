// How many of some intervals are under way, on average, in each column of a stretch of time.
import { type Holds, type Thread, upperBound, WAITING } from "./trace";

/** The beginnings and ends of intervals, each sorted, and of each the sums up to there. */
export interface Edges {
  starts: Float64Array;
  ends: Float64Array;
  startSums: Float64Array;
  endSums: Float64Array;
}

export function holdEdges({ starts, ends }: Holds): Edges {
  return edges(starts, ends);
}

function edges(starts: Float64Array, ends: Float64Array): Edges {
  return { starts, ends, startSums: sums(starts), endSums: sums(ends) };
}

function sums(values: Float64Array): Float64Array {
  const all = new Float64Array(values.length + 1);
  for (let i = 0; i < values.length; i++) all[i + 1] = all[i] + values[i];
  return all;
}

/** All waits for a lock. */
export function waitEdges(threads: Thread[], lock: number): Edges {
  let total = 0;
  for (const { slices } of threads) for (let i = 0; i < slices.count; i++) if (slices.states[i] === WAITING && slices.whats[i] === lock) total++;
  const starts = new Float64Array(total);
  const ends = new Float64Array(total);
  let next = 0;
  for (const { slices } of threads) {
    for (let i = 0; i < slices.count; i++) {
      if (slices.states[i] !== WAITING || slices.whats[i] !== lock) continue;
      starts[next] = slices.starts[i];
      ends[next++] = slices.starts[i + 1];
    }
  }
  return edges(starts.sort(), ends.sort());
}

/** When at least one of the intervals is under way. */
export function unionOf({ starts, ends }: Edges): Edges {
  const [first, last]: [number[], number[]] = [[], []];
  for (let i = 0; i < starts.length; i++) {
    if (i === 0 || starts[i] > ends[i - 1]) first.push(starts[i]);
    if (i + 1 === starts.length || starts[i + 1] > ends[i]) last.push(ends[i]);
  }
  return edges(Float64Array.from(first), Float64Array.from(last));
}

/** With more edges than this to a column the sums are used: then columns are so wide that rounding does not matter. */
const MANY = 16;

export function meanCounts(edges: Edges, from: number, to: number, columns: number): Float64Array {
  const inside = upperBound(edges.starts, to) - upperBound(edges.starts, from);
  return inside > MANY * columns ? fromSums(edges, from, to, columns) : stepByStep(edges, from, to, columns);
}

/** The area below the number of intervals under way, up to a moment, is the sum of how long ago each began less how long ago each ended. */
export function areaUntil({ starts, ends, startSums, endSums }: Edges, time: number): number {
  const [i, j] = [upperBound(starts, time), upperBound(ends, time)];
  return (i - j) * time - (startSums[i] - endSums[j]);
}

function fromSums(edges: Edges, from: number, to: number, columns: number): Float64Array {
  const means = new Float64Array(columns);
  const width = (to - from) / columns;
  let before = areaUntil(edges, from);
  for (let column = 0; column < columns; column++) {
    const after = areaUntil(edges, from + (column + 1) * width);
    means[column] = Math.max(0, after - before) / width;
    before = after;
  }
  return means;
}

function stepByStep({ starts, ends }: Edges, from: number, to: number, columns: number): Float64Array {
  const means = new Float64Array(columns);
  const width = (to - from) / columns;
  let i = upperBound(starts, from);
  let j = upperBound(ends, from);
  let time = from;
  for (let column = 0; column < columns; column++) {
    const end = column + 1 === columns ? to : from + (column + 1) * width;
    let area = 0;
    while (time < end) {
      const next = Math.min(end, starts[i] ?? end, ends[j] ?? end);
      area += (i - j) * (next - time);
      time = next;
      while (starts[i] <= time) i++;
      while (ends[j] <= time) j++;
    }
    means[column] = area / width;
  }
  return means;
}

export interface Bin {
  from: number;
  to: number;
  count: number;
}

const BINS_PER_DOUBLING = 2;

/** How many of some durations there are in bins that double in width every other time. */
export function logarithmicBins(durations: Iterable<number>): Bin[] {
  const counts: number[] = [];
  let lowest = Infinity;
  for (const duration of durations) {
    const bin = Math.max(0, Math.floor(Math.log2(duration) * BINS_PER_DOUBLING));
    counts[bin] = (counts[bin] ?? 0) + 1;
    lowest = Math.min(lowest, bin);
  }
  const edge = (bin: number) => 2 ** (bin / BINS_PER_DOUBLING);
  return Array.from({ length: Math.max(0, counts.length - lowest) }, (_, i) => {
    const bin = lowest + i;
    return { from: edge(bin), to: edge(bin + 1), count: counts[bin] ?? 0 };
  });
}
