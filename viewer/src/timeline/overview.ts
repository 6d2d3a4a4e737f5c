// Draws the whole recording in small, with a frame around what is shown.
import { duration } from "../format";
import { IDLE, RUNNING, WAITING } from "../trace";
import { contextOf } from "./canvas";
import { type Counts, highest, rememberedCounts } from "./counts";
import { GUTTER, OVERVIEW, SMALL } from "./layout";
import type { Scene } from "./scene";

export function overviewDrawer(canvas: HTMLCanvasElement, scene: Scene): () => void {
  const countsOf = rememberedCounts();
  return () => {
    const { trace, view, theme, watched } = scene;
    const [context] = contextOf(canvas, view.width, OVERVIEW);
    context.clearRect(0, 0, view.width, OVERVIEW);
    context.font = SMALL;
    context.fillStyle = theme.muted;
    context.fillText(`whole recording: ${duration(trace.summary.length)}`, 8, OVERVIEW / 2);
    context.fillStyle = theme.states[IDLE];
    context.fillRect(GUTTER, 4, view.width - GUTTER, OVERVIEW - 8);
    if (watched) drawCounts(context, scene, countsOf(watched, 0, view.length, Math.max(1, Math.round(view.width - GUTTER))));
    drawFrame(context, scene);
  };
}

/** The lock held in the upper half, threads waiting in the lower one. */
function drawCounts(context: CanvasRenderingContext2D, { theme }: Scene, { held, waiting }: Counts): void {
  const half = (OVERVIEW - 8) / 2;
  drawColumns(context, held, 1, 4 + half, half, theme.states[RUNNING]);
  drawColumns(context, waiting, highest(waiting), OVERVIEW - 4, half, theme.states[WAITING]);
}

function drawColumns(context: CanvasRenderingContext2D, values: Float64Array, most: number, base: number, half: number, color: string): void {
  context.fillStyle = color;
  values.forEach((value, column) => {
    const tall = (value / most) * (half - 1);
    context.fillRect(GUTTER + column, base - tall, 1, tall);
  });
}

function drawFrame(context: CanvasRenderingContext2D, { view, theme }: Scene): void {
  const [left, right] = [view.from, view.to].map((time) => GUTTER + (time / view.length) * (view.width - GUTTER));
  context.fillStyle = theme.panel;
  context.globalAlpha = 0.65;
  context.fillRect(GUTTER, 2, left - GUTTER, OVERVIEW - 4);
  context.fillRect(right, 2, view.width - right, OVERVIEW - 4);
  context.globalAlpha = 1;
  context.strokeStyle = theme.accent;
  context.lineWidth = 1.5;
  context.strokeRect(left, 2, Math.max(right - left, 2), OVERVIEW - 4);
}
