// Which stacks threads had in a stretch of time, and how long others waited meanwhile.
import type { Frame, Pieces } from "./code";
import { areaUntil, type Edges, unionOf, waitEdges } from "./series";
import { type Trace, upperBound } from "./trace";

/** How long something lasted that involves a stack. */
export type StackTime = [stack: Frame, time: number];

/** The pieces of a thread that overlap a stretch of time, cut to it. */
function* piecesBetween({ count, starts, ends, locks, stacks }: Pieces, from: number, to: number): Generator<{ start: number; end: number; lock: number; stack: Frame }> {
  for (let i = upperBound(ends, from, count); i < count && starts[i] < to; i++) {
    yield { start: Math.max(starts[i], from), end: Math.min(ends[i], to), lock: locks[i], stack: stacks[i] };
  }
}

/** The stacks that threads had between two moments while they held a lock, and for how long, longest first. */
export function stacksDuring(trace: Trace, threads: number[], lock: number, from: number, to: number): StackTime[] {
  const times = new Map<Frame, number>();
  for (const thread of threads) {
    for (const { start, end, lock: held, stack } of piecesBetween(trace.threads[thread].pieces, from, to)) {
      if (held === lock) times.set(stack, (times.get(stack) ?? 0) + end - start);
    }
  }
  return [...times].sort((a, b) => b[1] - a[1]);
}

/** The stack that a thread had at a moment while it held a lock, as far as it is known. */
export function stackAt(trace: Trace, thread: number, time: number): Frame | undefined {
  return piecesBetween(trace.threads[thread].pieces, time, time + 1).next().value?.stack;
}

/** The stack that a thread had as it waited between two moments, if it was taken. */
export function stackOfWait(trace: Trace, thread: number, from: number, to: number): Frame | undefined {
  const { times, stacks } = trace.threads[thread].waiting;
  const i = upperBound(times, from);
  return times[i] <= to ? stacks[i] : undefined;
}

/** What the time of a piece is: how long all others together waited meanwhile, or for how long at least one did. */
export type Measure = "lost" | "held";

/** Adds up the stacks of a recording. */
export class StackSums {
  private readonly edges = new Map<string, Edges>();

  constructor(private readonly trace: Trace) {}

  between(measure: Measure, from: number, to: number): StackTime[] {
    const times = new Map<Frame, number>();
    for (const { pieces } of this.trace.threads) {
      for (const { start, end, lock, stack } of piecesBetween(pieces, from, to)) {
        const edges = this.edgesOf(measure, lock);
        times.set(stack, (times.get(stack) ?? 0) + areaUntil(edges, end) - areaUntil(edges, start));
      }
    }
    return [...times].filter(([, time]) => time > 0);
  }

  private edgesOf(measure: Measure, lock: number): Edges {
    const key = `${measure} ${lock}`;
    const known = this.edges.get(key);
    if (known) return known;
    const edges = measure === "lost" ? waitEdges(this.trace.threads, lock) : unionOf(this.edgesOf("lost", lock));
    this.edges.set(key, edges);
    return edges;
  }
}
