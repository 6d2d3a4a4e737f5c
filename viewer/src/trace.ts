// The trace as the core packed it: a summary, and the states of every thread in typed arrays.
import { Bytes, unpack } from "./bytes";

export const STATES = ["running", "waiting", "idle", "sleep", "off-lock", "gc"] as const;
export const RUNNING = 0;
export const WAITING = 1;
export const IDLE = 2;
export const SLEEP = 3;
export const OFF_LOCK = 4;
export const GC = 5;

export interface Times {
  running: number;
  waiting: number;
  idle: number;
  sleep: number;
  off_lock: number;
  gc: number;
}

export interface WaitTimes {
  count: number;
  p50: number;
  p99: number;
  max: number;
}

export interface ThreadSummary {
  id: number;
  name: string;
  start: number;
  lifetime: number;
  times: Times;
  acquisitions: number;
  releases: number;
  waits: WaitTimes;
  longest_hold: number;
  longest_hold_at: number;
}

export interface BlameRow {
  thread: number;
  waited: number;
  by: [thread: number, time: number][];
  by_others: number;
  by_no_thread: number;
}

export interface LockSummary {
  id: number;
  name: string;
  held: number;
  utilization: number;
  mean_waiters: number;
  waited: number;
  holds: number;
  holders: [thread: number, time: number][];
  blame: BlameRow[];
}

export interface SpanSummary {
  name: string;
  count: number;
  total: number;
  bytes: number;
  times: Times;
}

export interface Finding {
  weight: "caveat" | "problem" | "note";
  text: string;
  advice: string | null;
}

export interface Summary {
  about: [key: string, value: string][];
  length: number;
  events: number;
  lost: number;
  useful_parallelism: number;
  times: Times;
  waits: WaitTimes;
  threads: ThreadSummary[];
  locks: LockSummary[];
  operations: SpanSummary[];
  marks: SpanSummary[];
  findings: Finding[];
}

export interface Span {
  name: string;
  start: number;
  end: number;
  bytes: number;
}

/** The states of one thread: slice i lasts from `starts[i]` to `starts[i + 1]`. */
export interface Slices {
  count: number;
  starts: Float64Array;
  states: Uint8Array;
  whats: Uint32Array;
}

export interface Thread {
  name: string;
  summary: ThreadSummary;
  slices: Slices;
  regions: Span[];
  marks: Span[];
}

/** The holds of a lock, in the order of time. */
export interface Holds {
  starts: Float64Array;
  ends: Float64Array;
  threads: Uint32Array;
}

export interface Lock {
  id: number;
  name: string;
  summary: LockSummary;
  holds: Holds;
}

export interface Trace {
  title: string;
  summary: Summary;
  names: Map<number, string>;
  threads: Thread[];
  locks: Lock[];
}

const NEW_WHAT = 6;

export async function load(base64: string): Promise<Trace> {
  return decode(new Bytes(await unpack(base64)));
}

function decode(bytes: Bytes): Trace {
  const head = JSON.parse(bytes.text(bytes.number())) as { title: string; summary: Summary; names: [number, string][] };
  const names = new Map(head.names);
  const threads = head.summary.threads.map((summary): Thread => ({
    name: summary.name,
    summary,
    slices: decodeSlices(bytes, summary.start),
    regions: decodeSpans(bytes, names),
    marks: decodeSpans(bytes, names),
  }));
  const locks = head.summary.locks.map((summary): Lock => ({
    id: summary.id,
    name: summary.name,
    summary,
    holds: decodeHolds(bytes, summary.id, threads),
  }));
  return { title: head.title, summary: head.summary, names, threads, locks };
}

function decodeSlices(bytes: Bytes, start: number): Slices {
  const count = bytes.number();
  const slices = {
    count,
    starts: new Float64Array(count + 1),
    states: new Uint8Array(count),
    whats: new Uint32Array(count),
  };
  const last = new Uint32Array(STATES.length);
  let time = start;
  let what = -1;
  for (let i = 0; i < count; ) {
    const token = bytes.number();
    const code = token % 8;
    const rest = Math.floor(token / 8);
    if (code === NEW_WHAT) {
      what = rest;
      continue;
    }
    if (what >= 0) {
      last[code] = what;
      what = -1;
    }
    slices.starts[i] = time;
    slices.states[i] = code;
    slices.whats[i] = last[code];
    time += rest;
    i++;
  }
  slices.starts[count] = time;
  return slices;
}

function decodeSpans(bytes: Bytes, names: Map<number, string>): Span[] {
  let time = 0;
  return Array.from({ length: bytes.number() }, () => {
    const start = (time += bytes.number());
    const end = start + bytes.number();
    const name = bytes.number();
    return { start, end, name: names.get(name) ?? `name ${name}`, bytes: bytes.number() };
  });
}

/** The data has only the order of the threads that held the lock; the times follow from the threads' states. */
function decodeHolds(bytes: Bytes, lock: number, threads: Thread[]): Holds {
  const count = bytes.number();
  const holds = { starts: new Float64Array(count), ends: new Float64Array(count), threads: new Uint32Array(count) };
  const next = new Uint32Array(threads.length);
  for (let i = 0; i < count; i++) {
    const thread = bytes.number();
    const { count: slices, starts, states, whats } = threads[thread].slices;
    const holdsAt = (slice: number) =>
      slice < slices && (states[slice] === RUNNING || states[slice] === GC) && whats[slice] === lock;
    let slice = next[thread];
    while (slice < slices && !holdsAt(slice)) slice++;
    holds.threads[i] = thread;
    holds.starts[i] = starts[slice];
    while (holdsAt(slice)) slice++;
    holds.ends[i] = starts[slice];
    next[thread] = slice;
  }
  return holds;
}

/** The index of the first number that is greater than `value`. */
export function upperBound(sorted: Float64Array, value: number, length = sorted.length): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle] > value) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The slice that a thread is in at a moment, or -1 outside its life. */
export function sliceAt({ starts, count }: Slices, time: number): number {
  if (count === 0 || time < starts[0] || time >= starts[count]) return -1;
  return upperBound(starts, time, count) - 1;
}

/** A thread and a length of time. */
export type Share = [thread: number, time: number];

/** The threads that held a lock between two moments, and for how long, longest first. */
export function holdersDuring({ starts, ends, threads }: Holds, from: number, to: number): Share[] {
  const shares = new Map<number, number>();
  for (let i = Math.max(0, upperBound(starts, from) - 1); i < starts.length && starts[i] < to; i++) {
    const time = Math.min(ends[i], to) - Math.max(starts[i], from);
    if (time > 0) shares.set(threads[i], (shares.get(threads[i]) ?? 0) + time);
  }
  return [...shares].sort((a, b) => b[1] - a[1]);
}

/** The threads that waited for a lock between two moments, and for how long, longest first. */
export function waitersDuring(threads: Thread[], lock: number, from: number, to: number): Share[] {
  const shares: Share[] = [];
  threads.forEach(({ slices: { starts, states, whats, count } }, thread) => {
    let waited = 0;
    for (let i = Math.max(0, upperBound(starts, from, count) - 1); i < count && starts[i] < to; i++) {
      if (states[i] !== WAITING || whats[i] !== lock) continue;
      waited += Math.max(0, Math.min(starts[i + 1], to) - Math.max(starts[i], from));
    }
    if (waited > 0) shares.push([thread, waited]);
  });
  return shares.sort((a, b) => b[1] - a[1]);
}
