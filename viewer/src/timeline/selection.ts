// Draws frames around the selected state and, if it waits, around what held the lock meanwhile.
import { type Trace, upperBound, WAITING } from "../trace";
import { type Row, rowOf } from "./arrange";
import { extent, factsAbout } from "./facts";
import { PAD, POOL, PROCESS, ROW } from "./layout";
import type { Scene } from "./scene";

/** With more holds than these during the selected wait none is framed, or none joined to it by a line. */
const MOST_FRAMED = 400;
const MOST_JOINED = 12;

/** The part of a row in which states are. */
export function barOf({ kind, open, top, height }: Row): { top: number; height: number } {
  const tall = kind === "process" ? PROCESS : kind === "pool" && !open ? POOL : ROW;
  return { top: top + PAD, height: Math.min(tall, height) - 2 * PAD };
}

/** `scrolled` is how far the rows are scrolled. */
export function drawSelection(context: CanvasRenderingContext2D, scene: Scene, scrolled: number): void {
  const { view, theme, selection } = scene;
  if (!selection) return;
  const placeOf = (trace: Trace, thread: number) => {
    const row = rowOf(scene.rows, trace, thread);
    return row && { top: barOf(row).top - scrolled, height: barOf(row).height };
  };
  const frame = (from: number, to: number, { top, height }: { top: number; height: number }) => {
    const x = Math.max(view.xOf(from), view.gutter - 1);
    const right = Math.min(view.xOf(to), view.width + 1);
    if (right >= x) context.strokeRect(x, top - 1, Math.max(right - x, 1.5), height + 2);
  };
  const mine = placeOf(selection.trace, selection.thread);
  if (!mine) return;
  context.lineWidth = 1.5;
  context.strokeStyle = theme.text;
  const { start, end } = extent(selection);
  frame(start, end, mine);
  const { state, lock } = factsAbout(selection);
  if (selection.mark || state !== WAITING || !lock) return;
  context.strokeStyle = theme.accent;
  const { starts, ends, threads } = lock.holds;
  const first = Math.max(0, upperBound(starts, start) - 1);
  const held = upperBound(starts, end) - first;
  if (held > MOST_FRAMED) return;
  for (let i = first; i < first + held; i++) {
    const [from, to] = [Math.max(starts[i], start), Math.min(ends[i], end)];
    const at = placeOf(selection.trace, threads[i]);
    if (to <= from || !at) continue;
    frame(from, to, at);
    const x = (view.xOf(from) + view.xOf(to)) / 2;
    if (held <= MOST_JOINED && x >= view.gutter && x <= view.width && at.top !== mine.top) joinRows(context, x, mine, at);
  }
}

type Place = { top: number; height: number };

/** A dashed line from one bar to another one. */
function joinRows(context: CanvasRenderingContext2D, x: number, from: Place, to: Place): void {
  const [upper, lower] = from.top < to.top ? [from, to] : [to, from];
  context.beginPath();
  context.setLineDash([3, 2]);
  context.moveTo(x, upper.top + upper.height + 1);
  context.lineTo(x, lower.top - 1);
  context.stroke();
  context.setLineDash([]);
}
