// What there is to say about one state of a thread.
import { holdersDuring, type Lock, OFF_LOCK, type Share, type Span, STATES, type Trace, WAITING, waitersDuring } from "../trace";

/** A state of a thread: the thread's index and the slice's. */
export interface Selection {
  thread: number;
  slice: number;
}

export interface Facts {
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

export function factsAbout(trace: Trace, { thread, slice }: Selection): Facts {
  const { name, slices, marks } = trace.threads[thread];
  const [start, end, state] = [slices.starts[slice], slices.starts[slice + 1], slices.states[slice]];
  const holds = STATES[state] === "running" || STATES[state] === "gc";
  const lock = holds || state === WAITING ? trace.locks.find(({ id }) => id === slices.whats[slice]) : undefined;
  const operation = state === OFF_LOCK ? trace.names.get(slices.whats[slice]) : undefined;
  let others: Share[] = [];
  if (lock) others = state === WAITING ? holdersDuring(lock.holds, start, end) : waitersDuring(trace.threads, lock.id, start, end);
  return {
    thread, name, state, start, end, lock, others,
    what: operation ?? lock?.name ?? "",
    marks: marks.filter((mark) => mark.start < end && mark.end > start).slice(0, MOST_MARKS),
  };
}
