// Finds states and marks of threads: below the pointer, beside the selected one, and behind it.
import { GC, RUNNING, sliceAt, type Slices, spansBetween, STATES, type Trace, upperBound, WAITING } from "../trace";
import { type Row, rowAt } from "./arrange";
import { factsAbout, type Selection } from "./facts";
import { LANE, ROW } from "./layout";
import type { Scene } from "./scene";
import type { View } from "./view";

/** How many of the states that share a pixel are looked at. */
const MOST_IN_A_PIXEL = 1000;

/** What a thread does at a moment. */
export function stateAt(trace: Trace, thread: number, time: number): Selection | null {
  const slice = sliceAt(trace.threads[thread].slices, time);
  return slice < 0 ? null : { trace, thread, slice };
}

/** What is at a place among the rows: a state or a mark of a thread; of a closed pool, what its most telling thread does. */
export function under({ rows, view }: Scene, x: number, y: number): Selection | null {
  const row = rowAt(rows, y);
  if (!row || row.kind === "process" || x < view.gutter) return null;
  if (row.kind === "pool") return inPool(row, view, x);
  const lane = Math.floor((y - row.top - ROW) / LANE);
  const mark = lane >= 0 ? markNear(row, lane, view, x) : undefined;
  const found = sliceNear(row.trace.threads[row.thread].slices, view, x);
  const slice = found < 0 && mark ? 0 : found;
  if (slice < 0 || (lane >= 0 && !mark)) return null;
  return { trace: row.trace, thread: row.thread, slice, ...(mark && { mark }) };
}

/** The longest mark of a lane that a pixel shows. */
function markNear({ trace, thread }: Row, lane: number, view: View, x: number) {
  const spans = spansBetween(trace.threads[thread].marks[lane] ?? [], view.timeAt(x - 1), view.timeAt(x + 1));
  return spans.reduce((a, b) => (a && a.end - a.start >= b.end - b.start ? a : b), spans[0]);
}

/** In a pool, a thread that waits is worth more than one that holds the lock, and that one more than others. */
function inPool({ trace, group }: Row, view: View, x: number): Selection | null {
  let best: Selection | null = null;
  let most = -1;
  for (const thread of group?.threads ?? []) {
    const { slices } = trace.threads[thread];
    const slice = sliceNear(slices, view, x);
    if (slice < 0) continue;
    const state = slices.states[slice];
    const weight = (state === WAITING ? 1e15 : state === RUNNING || state === GC ? 1e14 : 0) + slices.starts[slice + 1] - slices.starts[slice];
    if (weight > most) [best, most] = [{ trace, thread, slice }, weight];
  }
  return best;
}

/** How many threads of a pool are in each state at a moment. */
export function statesAt(trace: Trace, threads: number[], time: number): number[] {
  const counts = STATES.map(() => 0);
  for (const thread of threads) {
    const { slices } = trace.threads[thread];
    const slice = sliceAt(slices, time);
    if (slice >= 0) counts[slices.states[slice]]++;
  }
  return counts;
}

/** The slice under the pointer; where a pixel shows several, one that waits or the longest. */
function sliceNear(slices: Slices, view: View, x: number): number {
  const [from, to] = [view.timeAt(x), view.timeAt(x + 1)];
  let best = sliceAt(slices, from);
  const last = sliceAt(slices, Math.min(to, slices.starts[slices.count] - 1));
  const weight = (i: number) => (slices.starts[i + 1] - slices.starts[i]) * (slices.states[i] === WAITING ? 2 : 1);
  for (let i = Math.max(0, best); i <= last && i - best < MOST_IN_A_PIXEL; i++) if (best < 0 || weight(i) > weight(best)) best = i;
  return best;
}

const threadRows = ({ rows }: Scene) => rows.filter(({ kind }) => kind === "thread");

/** The first state to be seen. */
export function firstState(scene: Scene): Selection | null {
  const row = threadRows(scene)[0] ?? scene.rows.find(({ kind }) => kind === "pool");
  const thread = row?.kind === "pool" ? row.group?.threads[0] : row?.thread;
  if (!row || thread === undefined) return null;
  return stateAt(row.trace, thread, Math.max(scene.view.from, row.trace.threads[thread].slices.starts[0]));
}

/** The state some slices later, or some threads below at the same time. */
export function stateBeside(scene: Scene, { trace, thread, slice }: Selection, rows: number, slices: number): Selection | null {
  const { starts, count } = trace.threads[thread].slices;
  if (slices !== 0) return { trace, thread, slice: Math.min(Math.max(slice + slices, 0), count - 1) };
  const next = beside(scene, trace, thread, rows);
  if (!next) return null;
  const theirs = next.trace.threads[next.thread].slices;
  const time = (starts[slice] + starts[slice + 1]) / 2;
  return stateAt(next.trace, next.thread, Math.min(Math.max(time, theirs.starts[0]), theirs.starts[theirs.count] - 1));
}

/** Of a closed pool all threads are passed, though they share a row. */
function beside({ rows }: Scene, trace: Trace, thread: number, by: number): { trace: Trace; thread: number } | undefined {
  const all = rows.flatMap((row) => {
    if (row.kind === "thread") return [{ trace: row.trace, thread: row.thread }];
    return row.kind === "pool" && !row.open ? (row.group?.threads ?? []).map((thread) => ({ trace: row.trace, thread })) : [];
  });
  return all[all.findIndex((each) => each.trace === trace && each.thread === thread) + by];
}

/** From a thread that waits to the one that held the lock longest meanwhile, and from there to one that waited; or to thread `to`. */
export function stateBehind(selection: Selection, to?: number): Selection | null {
  const { trace } = selection;
  const { state, start, end, lock, others } = factsAbout(selection);
  const other = to ?? others[0]?.[0];
  if (!lock || other === undefined) return null;
  if (state === WAITING) {
    const { starts, ends, threads } = lock.holds;
    for (let i = Math.max(0, upperBound(starts, start) - 1); i < starts.length && starts[i] < end; i++) {
      if (threads[i] === other && ends[i] > start) return stateAt(trace, other, Math.max(starts[i], start));
    }
  } else {
    const { starts, states, whats, count } = trace.threads[other].slices;
    for (let i = Math.max(0, upperBound(starts, start, count) - 1); i < count && starts[i] < end; i++) {
      if (states[i] === WAITING && whats[i] === lock.id && starts[i + 1] > start) return { trace, thread: other, slice: i };
    }
  }
  return null;
}
