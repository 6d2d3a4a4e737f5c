// Draws a row for each thread: its name, its states, what it worked at, its marks, and the selection.
import { clean } from "../format";
import { OFF_LOCK, upperBound, WAITING } from "../trace";
import { contextOf, fitted } from "./canvas";
import { drawCrosshair } from "./crosshair";
import { factsAbout } from "./facts";
import { BAR, FONT, GUTTER, MARK, ROW, SMALL } from "./layout";
import type { Scene } from "./scene";
import { stateDrawer } from "./states";

/** The narrowest state, in pixels, that has its operation's name written into it. */
const NARROWEST_NAMED = 36;
/** With more states than this in view no state is wide enough for a name. */
const MOST_NAMED = 4_000;
/** With more holds than these during the selected wait none is framed, or none joined to it by a line. */
const MOST_FRAMED = 400;
const MOST_JOINED = 12;

export function rowDrawer(canvas: HTMLCanvasElement, scroller: HTMLElement, scene: Scene): () => void {
  const drawStates = stateDrawer();
  return () => {
    const { trace, view, theme, shown } = scene;
    const { clientHeight: height, scrollTop: top } = scroller;
    const [context, ratio] = contextOf(canvas, view.width, height);
    const first = Math.floor(top / ROW);
    const visible = shown.slice(first, Math.ceil((top + height) / ROW));
    const yOf = (row: number) => row * ROW - top + (ROW - BAR) / 2;
    const { width: wide, height: tall } = canvas;
    const left = Math.round(GUTTER * ratio);
    const bands = visible.map((_, row) => ({
      left,
      right: wide,
      top: Math.max(0, Math.round(yOf(first + row) * ratio)),
      bottom: Math.min(tall, Math.round((yOf(first + row) + BAR) * ratio)),
    }));
    const key = [top, wide, tall, theme.panel, ...visible].join();
    drawStates(context, { threads: visible.map((thread) => trace.threads[thread]), bands, range: view, left, theme, ratio, key });
    visible.forEach((thread, row) => {
      for (const draw of [drawName, drawMarks, drawOperations]) draw(context, scene, thread, yOf(first + row));
    });
    drawSelection(context, scene, (thread) => {
      const row = shown.indexOf(thread);
      return row < 0 ? null : yOf(row);
    });
    drawCrosshair(context, scene, height);
    if (shown.length === 0) {
      context.fillStyle = theme.muted;
      context.fillText("No thread matches.", GUTTER + 12, ROW / 2);
    }
  };
}

function drawName(context: CanvasRenderingContext2D, { trace, theme, selection }: Scene, thread: number, y: number): void {
  const selected = selection?.thread === thread;
  context.fillStyle = selected ? theme.accent : theme.text;
  context.font = selected ? `600 ${FONT}` : FONT;
  context.fillText(fitted(context, clean(trace.threads[thread].name), GUTTER - 20), 8, y + BAR / 2 + 0.5);
}

function drawMarks(context: CanvasRenderingContext2D, { trace, view, theme }: Scene, thread: number, y: number): void {
  context.fillStyle = theme.mark;
  let drawn = -1;
  for (const { start, end } of trace.threads[thread].marks) {
    if (end < view.from || start > view.to) continue;
    const x = Math.max(view.xOf(start), GUTTER);
    const right = Math.max(view.xOf(end), x + 1);
    if (right - drawn < 0.5) continue;
    context.fillRect(x, y - MARK + 1, right - x, MARK);
    drawn = right;
  }
}

function drawOperations(context: CanvasRenderingContext2D, { trace, view }: Scene, thread: number, y: number): void {
  const { slices } = trace.threads[thread];
  context.font = SMALL;
  context.fillStyle = "#ffffff";
  const shortest = NARROWEST_NAMED / view.scale;
  const first = Math.max(0, upperBound(slices.starts, view.from, slices.count) - 1);
  const last = upperBound(slices.starts, view.to, slices.count);
  if (last - first > MOST_NAMED) return;
  for (let i = first; i < last; i++) {
    if (slices.states[i] !== OFF_LOCK || slices.starts[i + 1] - slices.starts[i] < shortest) continue;
    const x = Math.max(view.xOf(slices.starts[i]), GUTTER);
    const width = Math.min(view.xOf(slices.starts[i + 1]), view.width) - x;
    const name = clean(trace.names.get(slices.whats[i]) ?? "");
    if (width > 30) context.fillText(fitted(context, name, width - 8), x + 4, y + BAR / 2 + 0.5);
  }
}

/** Frames the selected state and, if it waits, what held the lock meanwhile. */
function drawSelection(context: CanvasRenderingContext2D, scene: Scene, yOf: (thread: number) => number | null): void {
  const { trace, view, theme, selection } = scene;
  if (!selection) return;
  const { thread, state, start, end, lock } = factsAbout(trace, selection);
  const y = yOf(thread);
  const frame = (from: number, to: number, at: number) => {
    const x = Math.max(view.xOf(from), GUTTER - 1);
    const right = Math.min(view.xOf(to), view.width + 1);
    if (right >= x) context.strokeRect(x, at - 1, Math.max(right - x, 1.5), BAR + 2);
  };
  context.strokeStyle = theme.text;
  context.lineWidth = 1.5;
  if (y !== null) frame(start, end, y);
  if (state !== WAITING || !lock || y === null) return;
  context.strokeStyle = theme.accent;
  const { starts, ends, threads } = lock.holds;
  const first = Math.max(0, upperBound(starts, start) - 1);
  const held = upperBound(starts, end) - first;
  if (held > MOST_FRAMED) return;
  for (let i = first; i < first + held; i++) {
    const [from, to] = [Math.max(starts[i], start), Math.min(ends[i], end)];
    const at = yOf(threads[i]);
    if (to <= from || at === null) continue;
    frame(from, to, at);
    const x = (view.xOf(from) + view.xOf(to)) / 2;
    if (held <= MOST_JOINED && x >= GUTTER && x <= view.width) joinRows(context, x, y, at);
  }
}

/** A dashed line from the bar at `y` to the one at `at`. */
function joinRows(context: CanvasRenderingContext2D, x: number, y: number, at: number): void {
  context.beginPath();
  context.setLineDash([3, 2]);
  context.moveTo(x, at > y ? at - 1 : at + BAR + 1);
  context.lineTo(x, at > y ? y + BAR + 1 : y - 1);
  context.stroke();
  context.setLineDash([]);
}
