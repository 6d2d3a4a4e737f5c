// Draws the marks of a thread as bars, a nested one below the one that it is in.
import { clean } from "../format";
import { spansBetween } from "../trace";
import type { Row } from "./arrange";
import { fitted } from "./canvas";
import { LANE, MOST_LANES, ROW, SMALL } from "./layout";
import type { Scene } from "./scene";

/** The narrowest bar, in pixels, into which its name is written. */
const NARROWEST_NAMED = 24;

export function drawMarks(context: CanvasRenderingContext2D, scene: Scene, row: Row, y: number): void {
  const { marks } = row.trace.threads[row.thread];
  marks.slice(0, MOST_LANES).forEach((_, lane) => drawLane(context, scene, row, lane, y + ROW + lane * LANE - 2));
}

function drawLane(context: CanvasRenderingContext2D, { view, theme, selection }: Scene, { trace, thread }: Row, lane: number, y: number): void {
  context.font = SMALL;
  let drawn = -1;
  for (const mark of spansBetween(trace.threads[thread].marks[lane], view.from, view.to)) {
    const x = Math.max(view.xOf(mark.start), view.gutter);
    const right = Math.min(Math.max(view.xOf(mark.end) - 0.5, x + 1), view.width);
    if (right - drawn < 0.5) continue;
    drawn = right;
    context.fillStyle = theme.mark;
    context.globalAlpha = selection?.mark === mark ? 1 : 0.3;
    context.fillRect(x, y, right - x, LANE - 2);
    context.globalAlpha = 1;
    context.fillRect(x, y, 1, LANE - 2);
    if (right - x < NARROWEST_NAMED) continue;
    context.fillStyle = selection?.mark === mark ? theme.panel : theme.text;
    context.fillText(fitted(context, clean(mark.name), right - x - 8), x + 4, y + LANE / 2 - 0.5);
  }
}
