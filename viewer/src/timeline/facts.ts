// What there is to say about a state or a mark of a thread.
import { addTimes, overlapping } from "../sums";
import { holdersDuring, type Lock, OFF_LOCK, type Share, type Span, STATES, type Trace, WAITING, waitersDuring } from "../trace";
import { marksBetween } from "../waits";

/** A state of a thread, or one of its marks. */
export interface Selection {
  trace: Trace;
  thread: number;
  slice: number;
  mark?: Span;
}

export interface Facts {
  trace: Trace;
  thread: number;
  name: string;
  state: number;
  start: number;
  end: number;
  what: string;
  lock: Lock | undefined;
  marks: Span[];
  /** The threads that held the lock while this one waited, or that waited while it held the lock. */
  others: Share[];
}

const MOST_MARKS = 8;

export function factsAbout({ trace, thread, slice }: Selection): Facts {
  const { name, slices } = trace.threads[thread];
  const [start, end, state] = [slices.starts[slice], slices.starts[slice + 1], slices.states[slice]];
  const holds = STATES[state] === "running" || STATES[state] === "gc";
  const lock = holds || state === WAITING ? trace.locks.find(({ id }) => id === slices.whats[slice]) : undefined;
  const operation = state === OFF_LOCK ? trace.names.get(slices.whats[slice]) : undefined;
  let others: Share[] = [];
  if (lock) others = state === WAITING ? holdersDuring(lock.holds, start, end) : waitersDuring(trace.threads, lock.id, start, end);
  return {
    trace, thread, name, state, start, end, lock, others,
    what: operation ?? lock?.name ?? "",
    marks: marksBetween(trace, thread, start, end).slice(0, MOST_MARKS),
  };
}

export interface MarkFacts {
  /** The thread's time in each state during the mark. */
  times: number[];
  /** The threads that held the lock while this one waited in the mark. */
  behind: Share[];
  /** The threads that waited while this one held the lock in the mark. */
  waiters: Share[];
}

export function factsAboutMark(trace: Trace, thread: number, { start, end }: Span): MarkFacts {
  const times = STATES.map(() => 0);
  addTimes(times, trace.threads[thread].slices, start, end);
  return {
    times,
    behind: overlapping(trace, thread, "waits", start, end),
    waiters: overlapping(trace, thread, "holds", start, end),
  };
}

/** From when to when something selected lasts. */
export function extent({ trace, thread, slice, mark }: Selection): { start: number; end: number } {
  const { starts } = trace.threads[thread].slices;
  return mark ?? { start: starts[slice], end: starts[slice + 1] };
}
