// The rows of the timeline: processes, pools and threads, in which order, and which of them are open.
import type { Group, Trace } from "../trace";
import { LANE, MOST_LANES, POOL, PROCESS, ROW } from "./layout";

export type Order = "appearance" | "waiting" | "running" | "name";

export interface Row {
  kind: "process" | "pool" | "thread";
  trace: Trace;
  /** Of a pool and a thread. */
  group: Group | null;
  /** Of a thread; otherwise -1. */
  thread: number;
  /** What opens and closes it, or null. */
  key: string | null;
  open: boolean;
  /** Whether it belongs to a pool above it. */
  inner: boolean;
  top: number;
  height: number;
}

export interface Wish {
  /** What the threads shown are to contain. */
  text: string;
  order: Order;
  /** The keys of rows that are open where others of their kind are closed, or the other way round. */
  toggled: ReadonlySet<string>;
  /** Where each group comes in the order of appearance, if not by its first thread. */
  rank: (group: Group, trace: Trace) => number;
}

/** With more threads than this, pools are closed at first. */
const FEW = 16;
/** With more processes than this, only the first is open at first. */
const FEW_PROCESSES = 4;

/** The keys of all pools. */
export function poolKeys(traces: Trace[]): string[] {
  return traces.flatMap((trace) => trace.groups.filter(({ threads }) => threads.length > 1).map((group) => keyOf(trace, group)));
}

export function keyOf(trace: Trace, group?: Group): string {
  return group ? `${trace.index}.${group.index}` : `${trace.index}`;
}

/** Whether pools are open at first. */
export function opensPools(traces: Trace[]): boolean {
  const threads = traces.reduce((sum, trace) => sum + trace.threads.length, 0);
  return threads <= FEW || (traces.length === 1 && traces[0].groups.length === 1);
}

export function arranged(traces: Trace[], wish: Wish): Row[] {
  const rows: Row[] = [];
  let top = 0;
  const put = (row: Omit<Row, "top">) => {
    rows.push({ ...row, top });
    top += row.height;
  };
  const pools = opensPools(traces);
  for (const trace of traces) {
    const key = keyOf(trace);
    const open = wish.toggled.has(key) !== (traces.length <= FEW_PROCESSES || trace.index === 0) || wish.text !== "";
    if (traces.length > 1) put({ kind: "process", trace, group: null, thread: -1, key, open, inner: false, height: PROCESS });
    if (open || traces.length === 1) arrangeGroups(trace, wish, pools, put);
  }
  return rows;
}

function arrangeGroups(trace: Trace, wish: Wish, pools: boolean, put: (row: Omit<Row, "top">) => void): void {
  const fits = (thread: number) => contains(trace, thread, wish.text);
  for (const group of inOrder(trace, wish)) {
    const members = group.threads.filter(fits);
    if (members.length === 0) continue;
    const key = group.threads.length > 1 ? keyOf(trace, group) : null;
    const open = key === null || wish.toggled.has(key) !== pools || wish.text !== "";
    if (key) put({ kind: "pool", trace, group, thread: -1, key, open, inner: false, height: open ? ROW : POOL });
    if (!open) continue;
    for (const thread of members) {
      const lanes = Math.min(trace.threads[thread].marks.length, MOST_LANES);
      put({ kind: "thread", trace, group, thread, key: null, open: false, inner: key !== null, height: ROW + lanes * LANE });
    }
  }
}

/** Whether a text occurs in a thread's name, marks or operations. */
function contains({ threads }: Trace, thread: number, text: string): boolean {
  const has = ({ name }: { name: string }) => name.toLowerCase().includes(text);
  const { marks, regions } = threads[thread];
  return !text || has(threads[thread]) || marks.some((lane) => lane.some(has)) || regions.some(has);
}

function inOrder(trace: Trace, { order, rank }: Wish): Group[] {
  const { appearance, waiting, running } = {
    appearance: (group: Group) => rank(group, trace),
    waiting: ({ summary }: Group) => -summary.times.waiting,
    running: ({ summary }: Group) => -summary.times.running,
  };
  const by = { appearance, waiting, running };
  const compare = order === "name" ? (a: Group, b: Group) => a.name.localeCompare(b.name) : (a: Group, b: Group) => by[order](a) - by[order](b);
  return [...trace.groups].sort((a, b) => compare(a, b) || a.index - b.index);
}

/** The row that shows a thread: its own one, or that of its closed pool or process. */
export function rowOf(rows: Row[], trace: Trace, thread: number): Row | undefined {
  const group = trace.groups[trace.threads[thread].group];
  return (
    rows.find((row) => row.trace === trace && row.thread === thread) ??
    rows.find((row) => row.trace === trace && row.kind === "pool" && row.group === group) ??
    rows.find((row) => row.trace === trace && row.kind === "process")
  );
}

/** The row at a height, counted from the first row. */
export function rowAt(rows: Row[], y: number): Row | undefined {
  return rows.find(({ top, height }) => y >= top && y < top + height);
}
