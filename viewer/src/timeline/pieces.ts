// Draws where stacks were taken: a tick at the lower edge of the bar at each, and in wide ones the function's name.
import { nameOf, type Pieces } from "../code";
import { clean } from "../format";
import { upperBound } from "../trace";
import type { Row } from "./arrange";
import { fitted } from "./canvas";
import { SMALL } from "./layout";
import type { Scene } from "./scene";
import { barOf } from "./selection";

/** The least room, in pixels, into which a function's name is written. */
const NARROWEST_NAMED = 40;
const TICK = 5;
/** Ticks closer than this, in pixels, are one. */
const CLOSE = 8;

/** `y` is where the row begins. */
export function drawPieces(context: CanvasRenderingContext2D, { view, theme }: Scene, row: Row, y: number): void {
  const { pieces, waiting } = row.trace.threads[row.thread];
  const bar = barOf(row);
  const top = y + bar.top - row.top;
  const bottom = top + bar.height;
  let last = -Infinity;
  const tick = (time: number) => {
    const x = Math.round(view.xOf(time)) - 1;
    if (x < view.gutter || x > view.width || x - last < CLOSE) return;
    last = x;
    context.fillStyle = theme.panel;
    context.fillRect(x - 1, bottom - TICK, 3, TICK);
    context.fillStyle = theme.text;
    context.fillRect(x, bottom - TICK, 1, TICK);
  };
  context.font = SMALL;
  const end = upperBound(pieces.starts, view.to, pieces.count);
  for (let i = upperBound(pieces.ends, view.from, pieces.count); i < end; i++) {
    const start = view.xOf(pieces.starts[i]);
    tick(pieces.ends[i]);
    while (i + 1 < end && continues(pieces, i + 1)) tick(pieces.ends[++i]);
    const x = Math.max(start, view.gutter);
    const width = Math.min(view.xOf(pieces.ends[i]), view.width) - x;
    if (width < NARROWEST_NAMED) continue;
    context.fillStyle = "#ffffff";
    context.fillText(fitted(context, clean(nameOf(pieces.stacks[i])), width - 8), x + 4, top + bar.height / 2 + 0.5);
  }
  last = -Infinity;
  for (let i = upperBound(waiting.times, view.from); waiting.times[i] <= view.to; i++) tick(waiting.times[i]);
}

/** Whether a piece has the stack of the one before, which ends where it begins. */
function continues({ starts, ends, stacks }: Pieces, i: number): boolean {
  return stacks[i] === stacks[i - 1] && starts[i] === ends[i - 1];
}
