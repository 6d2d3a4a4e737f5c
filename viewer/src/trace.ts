// The trace as the core packed it: a summary, and the states of every thread in typed arrays.
import { Bytes, unpack } from "./bytes";
import { CodeReader, type Pieces, type WaitingStacks } from "./code";

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
  total: number;
  p50: number;
  p90: number;
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
  contended: WaitTimes;
  longest_hold: number;
  /** Since the beginning of the recording, not of the page's axis. */
  longest_hold_at: number;
}

/** Threads whose names differ only in a number, or a thread alone. */
export interface GroupSummary {
  name: string;
  threads: number[];
  times: Times;
  contended: WaitTimes;
  /** The share of their active time that they lost to the lock. */
  lost: number;
}

/** An interpreter lock, or what stands for one where there is none. */
export type LockKind = "interpreter" | "stop_the_world" | "spinning" | "objects";

export interface LockSummary {
  id: number;
  name: string;
  kind: LockKind;
  held: number;
  utilization: number;
  mean_waiters: number;
  waited: number;
  holds: number;
  by_mark: MarkBlame[];
}

export interface SpanSummary {
  name: string;
  count: number;
  total: number;
  bytes: number;
  times: Times;
}

/** How long others waited while threads of a group, in a mark or in none, held the lock. */
export interface MarkBlame {
  group: number;
  /** The index in the summary's marks. */
  mark: number | null;
  held: number;
  longest_hold: number;
  inflicted: number;
}

export interface MarkSummary extends SpanSummary {
  lengths: WaitTimes;
  /** What each instance lost in contended waits. */
  losses: WaitTimes;
  inflicted: number;
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
  contended: WaitTimes;
  threads: ThreadSummary[];
  groups: GroupSummary[];
  locks: LockSummary[];
  operations: SpanSummary[];
  marks: MarkSummary[];
  code: BlamedCode;
  findings: Finding[];
}

/** A line that held a lock while others waited. */
export interface BlamedLine {
  function: string;
  file: string;
  /** 0 if it is unknown. */
  line: number;
  lost: number;
  longest_hold: number;
  groups: [group: number, lost: number][];
}

/** The code that others waited for: how long they did is known of holds with a stack. */
export interface BlamedCode {
  lines: BlamedLine[];
  known: number;
  unknown: number;
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
  /** The index of its group. */
  group: number;
  summary: ThreadSummary;
  slices: Slices;
  regions: Span[];
  /** Its marks in lanes, in which they follow each other: a mark within another one is in a later lane. */
  marks: Span[][];
  /** What it ran while others waited. */
  pieces: Pieces;
  /** Where it was as it waited itself. */
  waiting: WaitingStacks;
}

export interface Group {
  index: number;
  name: string;
  threads: number[];
  summary: GroupSummary;
  /** How many of its threads lived at the same time, at most. */
  peak: number;
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

/** One recording. All times except those of the summary are on the page's axis. */
export interface Trace {
  /** Its place among the recordings of the page. */
  index: number;
  title: string;
  /** When it began. */
  offset: number;
  /** When it ended. */
  end: number;
  summary: Summary;
  names: Map<number, string>;
  threads: Thread[];
  groups: Group[];
  locks: Lock[];
}

const NEW_WHAT = 6;

interface Head {
  title: string;
  offset: number;
  summary: Summary;
  names: [number, string][];
  functions: [name: string, file: string][];
}

export async function load(base64: string, index: number): Promise<Trace> {
  return decode(new Bytes(await unpack(base64)), index);
}

function decode(bytes: Bytes, index: number): Trace {
  const { title, offset, summary, names: pairs, functions } = JSON.parse(bytes.text(bytes.number())) as Head;
  const names = new Map(pairs);
  const groupOf = new Map(summary.groups.flatMap(({ threads }, group) => threads.map((thread) => [thread, group])));
  const lives = summary.threads.map((summary, thread) => ({
    name: summary.name,
    group: groupOf.get(thread) as number,
    summary,
    slices: decodeSlices(bytes, summary.start + offset),
    regions: decodeSpans(bytes, names, offset),
    marks: lanes(decodeSpans(bytes, names, offset)),
  }));
  const locks = summary.locks.map((summary): Lock => ({
    id: summary.id,
    name: summary.name,
    summary,
    holds: decodeHolds(bytes, summary.id, lives),
  }));
  const code = new CodeReader(bytes, functions, offset);
  const threads = lives.map((life): Thread => ({ ...life, pieces: code.pieces(), waiting: code.waiting() }));
  const groups = summary.groups.map((summary, index): Group => ({
    index, summary,
    name: summary.name,
    threads: summary.threads,
    peak: mostAtOnce(summary.threads.map((thread) => threads[thread].slices)),
  }));
  return { index, title, offset, end: offset + summary.length, summary, names, threads, groups, locks };
}

function mostAtOnce(lives: Slices[]): number {
  const starts = lives.map(({ starts }) => starts[0]).sort((a, b) => a - b);
  const ends = lives.map(({ starts, count }) => starts[count]).sort((a, b) => a - b);
  let most = 1;
  for (let i = 0, j = 0; i < starts.length; i++) {
    while (ends[j] <= starts[i]) j++;
    most = Math.max(most, i + 1 - j);
  }
  return most;
}

/** Puts each span into the first lane that is free when it begins; of two that begin together, the longer one first. */
function lanes(spans: Span[]): Span[][] {
  const all: Span[][] = [];
  for (const span of spans.sort((a, b) => a.start - b.start || b.end - a.end)) {
    const free = all.find((lane) => lane[lane.length - 1].end <= span.start);
    if (free) free.push(span);
    else all.push([span]);
  }
  return all;
}

/** The spans of a lane that overlap a stretch of time. */
export function spansBetween(lane: Span[], from: number, to: number): Span[] {
  let low = 0;
  let high = lane.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (lane[middle].end > from) high = middle;
    else low = middle + 1;
  }
  const found: Span[] = [];
  for (let i = low; i < lane.length && lane[i].start < to; i++) found.push(lane[i]);
  return found;
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

function decodeSpans(bytes: Bytes, names: Map<number, string>, offset: number): Span[] {
  let time = offset;
  return Array.from({ length: bytes.number() }, () => {
    const start = (time += bytes.number());
    const end = start + bytes.number();
    const name = bytes.number();
    return { start, end, name: names.get(name) ?? `name ${name}`, bytes: bytes.number() };
  });
}

/** The data has only the order of the threads that held the lock; the times follow from the threads' states. */
function decodeHolds(bytes: Bytes, lock: number, threads: { slices: Slices }[]): Holds {
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
