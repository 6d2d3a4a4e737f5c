// What threads did in a stretch of time, summed up.
import { GC, type Group, RUNNING, type Share, type Slices, STATES, type Trace, upperBound, WAITING } from "./trace";
import { contendedWaits, quantile } from "./waits";

export interface Sums {
  /** The time in each state. */
  times: number[];
  waits: number;
  p50: number;
  p99: number;
}

/** The time that a thread spent in each state between two moments, added to `times`. */
export function addTimes(times: number[], { starts, states, count }: Slices, from: number, to: number): void {
  for (let i = Math.max(0, upperBound(starts, from, count) - 1); i < count && starts[i] < to; i++) {
    times[states[i]] += Math.max(0, Math.min(starts[i + 1], to) - Math.max(starts[i], from));
  }
}

/** The sums of some threads between two moments. Of contended waits that began before or end later, the whole length counts. */
export function sumsOf(trace: Trace, threads: number[], from: number, to: number): Sums {
  const times = STATES.map(() => 0);
  const lengths: number[] = [];
  for (const thread of threads) {
    addTimes(times, trace.threads[thread].slices, from, to);
    for (const { start, end } of contendedWaits(trace, thread, from, to)) lengths.push(end - start);
  }
  const sorted = Float64Array.from(lengths).sort();
  return { times, waits: sorted.length, p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99) };
}

/** The threads that held a lock while this one waited for it, or waited while this one held it, between two moments. */
export function overlapping(trace: Trace, thread: number, own: "waits" | "holds", from: number, to: number): Share[] {
  const holding = [RUNNING, GC];
  const [mine, theirs] = own === "waits" ? [[WAITING], holding] : [holding, [WAITING]];
  const shares: Share[] = [];
  trace.threads.forEach(({ slices }, other) => {
    if (other === thread) return;
    const time = overlap(trace.threads[thread].slices, mine, slices, theirs, from, to);
    if (time > 0) shares.push([other, time]);
  });
  return shares.sort((a, b) => b[1] - a[1]);
}

/** For how long one thread was in some states while another one was in others, because of the same lock. */
function overlap(a: Slices, inA: number[], b: Slices, inB: number[], from: number, to: number): number {
  let [i, j] = [a, b].map(({ starts, count }) => Math.max(0, upperBound(starts, from, count) - 1));
  let sum = 0;
  while (i < a.count && j < b.count && a.starts[i] < to && b.starts[j] < to) {
    const [start, end] = [Math.max(a.starts[i], b.starts[j], from), Math.min(a.starts[i + 1], b.starts[j + 1], to)];
    if (end > start && a.whats[i] === b.whats[j] && inA.includes(a.states[i]) && inB.includes(b.states[j])) sum += end - start;
    if (a.starts[i + 1] <= b.starts[j + 1]) i++;
    else j++;
  }
  return sum;
}

/** Shares of threads as shares of their groups, the largest first. */
export function byGroup(trace: Trace, shares: Share[]): [Group, number, threads: number[]][] {
  const all = new Map<number, [Group, number, number[]]>();
  for (const [thread, time] of shares) {
    const group = trace.groups[trace.threads[thread].group];
    const sum = all.get(group.index) ?? [group, 0, []];
    all.set(group.index, sum);
    sum[1] += time;
    sum[2].push(thread);
  }
  return [...all.values()].sort((a, b) => b[1] - a[1]);
}
