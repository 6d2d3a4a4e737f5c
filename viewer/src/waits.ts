// Contended waits: those for a lock that another thread held, or that took long for another reason. A thread that takes a
// free lock waits for it, too, but only for some 60 ns. The core decides in the same way.
import { type Holds, type Lock, type Share, type Span, spansBetween, holdersDuring, type Trace, upperBound, WAITING } from "./trace";

/** A wait of this many nanoseconds is contended even if no other thread held the lock. */
const LATE = 1e6;

function isContended({ starts, ends, threads }: Holds, thread: number, start: number, end: number): boolean {
  if (end - start >= LATE) return true;
  for (let i = upperBound(ends, start); i < starts.length && starts[i] < end; i++) if (threads[i] !== thread) return true;
  return false;
}

export interface Wait {
  trace: Trace;
  thread: number;
  slice: number;
  start: number;
  end: number;
}

/** The waits of a thread that overlap a stretch of time and take at least `shortest`, if they are contended. */
export function* contendedWaits(trace: Trace, thread: number, from = -Infinity, to = Infinity, shortest = () => 0): Generator<Wait> {
  const { starts, states, whats, count } = trace.threads[thread].slices;
  const locks = new Map(trace.locks.map((lock) => [lock.id, lock]));
  for (let slice = Math.max(0, upperBound(starts, from, count) - 1); slice < count && starts[slice] < to; slice++) {
    if (states[slice] !== WAITING) continue;
    const [start, end] = [starts[slice], starts[slice + 1]];
    const lock = locks.get(whats[slice]);
    if (end <= from || end - start <= shortest() || !lock) continue;
    // Without an interpreter lock, waits are recorded only while something has to be waited for.
    if (lock.summary.kind === "spinning") continue;
    if (lock.summary.kind !== "interpreter" || isContended(lock.holds, thread, start, end)) yield { trace, thread, slice, start, end };
  }
}

/** The longest contended waits of some recordings, the longest first. */
export function longestWaits(traces: Trace[], most: number): Wait[] {
  const found: Wait[] = [];
  const length = ({ start, end }: Wait) => end - start;
  const shortest = () => (found.length < most ? 0 : length(found[found.length - 1]));
  for (const trace of traces) {
    trace.threads.forEach((_, thread) => {
      for (const wait of contendedWaits(trace, thread, -Infinity, Infinity, shortest)) {
        const at = found.findIndex((other) => length(other) < length(wait));
        found.splice(at < 0 ? found.length : at, 0, wait);
        if (found.length > most) found.pop();
      }
    });
  }
  return found;
}

/** The threads that held the lock during a wait, the longest first. */
export function holdersOf(wait: Wait): Share[] {
  const lock = lockOf(wait);
  return lock ? holdersDuring(lock.holds, wait.start, wait.end) : [];
}

export function lockOf({ trace, thread, slice }: Wait): Lock | undefined {
  return trace.locks.find(({ id }) => id === trace.threads[thread].slices.whats[slice]);
}

/** The marks of a thread that overlap a stretch of time, outer ones first. */
export function marksBetween(trace: Trace, thread: number, from: number, to: number): Span[] {
  return trace.threads[thread].marks.flatMap((lane) => spansBetween(lane, from, to));
}

/** The value that a share of some numbers, sorted, do not exceed. */
export function quantile(sorted: ArrayLike<number>, share: number): number {
  return sorted.length === 0 ? 0 : sorted[Math.max(1, Math.ceil(sorted.length * share)) - 1];
}
