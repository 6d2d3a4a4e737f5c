// Draws the whole axis of time in small, with a frame around what is shown.
import { duration } from "../format";
import { IDLE, RUNNING, WAITING } from "../trace";
import { contextOf, fitted } from "./canvas";
import { highest, rememberedCounts } from "./counts";
import { OVERVIEW, SMALL } from "./layout";
import type { Scene } from "./scene";

export function overviewDrawer(canvas: HTMLCanvasElement, scene: Scene): () => void {
  const countsOf = rememberedCounts();
  return () => {
    const { view, theme, watched } = scene;
    const [context] = contextOf(canvas, view.width, OVERVIEW);
    context.clearRect(0, 0, view.width, OVERVIEW);
    context.font = SMALL;
    context.fillStyle = theme.muted;
    context.fillText(fitted(context, `all: ${duration(view.length)}`, view.gutter - 16), 8, OVERVIEW / 2);
    context.fillStyle = theme.states[IDLE];
    context.fillRect(view.gutter, 4, view.width - view.gutter, OVERVIEW - 8);
    const columns = Math.max(1, Math.round(view.width - view.gutter));
    const counts = watched.map((each) => countsOf(each, 0, view.length, columns));
    const half = (OVERVIEW - 8) / 2;
    // The lock held in the upper half, threads waiting in the lower one; several recordings on top of each other.
    drawColumns(context, view.gutter, sum(counts.map(({ held }) => held), columns), watched.length, 4 + half, half, theme.states[RUNNING]);
    const waiting = sum(counts.map(({ waiting }) => waiting), columns);
    drawColumns(context, view.gutter, waiting, highest(waiting), OVERVIEW - 4, half, theme.states[WAITING]);
    drawFrame(context, scene);
  };
}

function sum(all: Float64Array[], columns: number): Float64Array {
  const sums = new Float64Array(columns);
  for (const values of all) values.forEach((value, column) => (sums[column] += value));
  return sums;
}

function drawColumns(context: CanvasRenderingContext2D, left: number, values: Float64Array, most: number, base: number, half: number, color: string): void {
  context.fillStyle = color;
  values.forEach((value, column) => {
    const tall = (value / most) * (half - 1);
    context.fillRect(left + column, base - tall, 1, tall);
  });
}

function drawFrame(context: CanvasRenderingContext2D, { view, theme }: Scene): void {
  const { gutter, width } = view;
  const [left, right] = [view.from, view.to].map((time) => gutter + (time / view.length) * (width - gutter));
  context.fillStyle = theme.panel;
  context.globalAlpha = 0.65;
  context.fillRect(gutter, 2, left - gutter, OVERVIEW - 4);
  context.fillRect(right, 2, width - right, OVERVIEW - 4);
  context.globalAlpha = 1;
  context.strokeStyle = theme.accent;
  context.lineWidth = 1.5;
  context.strokeRect(left, 2, Math.max(right - left - 1, 2), OVERVIEW - 4);
}
