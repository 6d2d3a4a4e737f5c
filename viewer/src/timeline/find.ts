// Finds states of threads: below the pointer, beside the selected one, and behind it.
import { sliceAt, type Slices, type Trace, upperBound, WAITING } from "../trace";
import { factsAbout, type Selection } from "./facts";
import { GUTTER, ROW } from "./layout";
import type { Scene } from "./scene";
import type { View } from "./view";

/** How many of the states that share a pixel are looked at. */
const MOST_IN_A_PIXEL = 1000;

/** What a thread does at a moment. */
export function stateAt({ threads }: Trace, thread: number, time: number): Selection | null {
  const slice = sliceAt(threads[thread].slices, time);
  return slice < 0 ? null : { thread, slice };
}

/** The thread of the row at `y`, which counts from the first row, seen or not. */
export function threadUnder({ shown }: Scene, y: number): number | undefined {
  return shown[Math.floor(y / ROW)];
}

/** The state at a place among the rows. */
export function stateUnder(scene: Scene, x: number, y: number): Selection | null {
  const thread = threadUnder(scene, y);
  if (thread === undefined || x < GUTTER) return null;
  const slice = sliceNear(scene.trace.threads[thread].slices, scene.view, x);
  return slice < 0 ? null : { thread, slice };
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

/** The first state to be seen. */
export function firstState({ trace, view, shown }: Scene): Selection | null {
  if (shown.length === 0) return null;
  return stateAt(trace, shown[0], Math.max(view.from, trace.threads[shown[0]].slices.starts[0]));
}

/** The state some slices later, or some rows below at the same time. */
export function stateBeside({ trace, shown }: Scene, { thread, slice }: Selection, rows: number, slices: number): Selection | null {
  const { starts, count } = trace.threads[thread].slices;
  if (slices !== 0) return { thread, slice: Math.min(Math.max(slice + slices, 0), count - 1) };
  const next = shown[shown.indexOf(thread) + rows];
  if (next === undefined) return null;
  const theirs = trace.threads[next].slices;
  const time = (starts[slice] + starts[slice + 1]) / 2;
  return stateAt(trace, next, Math.min(Math.max(time, theirs.starts[0]), theirs.starts[theirs.count] - 1));
}

/** From a thread that waits to the one that held the lock longest meanwhile, and from there to one that waited; or to thread `to`. */
export function stateBehind(trace: Trace, selection: Selection, to?: number): Selection | null {
  const { state, start, end, lock, others } = factsAbout(trace, selection);
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
      if (states[i] === WAITING && whats[i] === lock.id && starts[i + 1] > start) return { thread: other, slice: i };
    }
  }
  return null;
}
