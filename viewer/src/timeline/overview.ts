// Draws the whole recording in small, with a frame around what is shown.
import { duration } from "../format";
import { IDLE, RUNNING, WAITING } from "../trace";
import { contextOf } from "./canvas";
import { highest, RememberedCounts } from "./counts";
import { GUTTER, OVERVIEW, SMALL } from "./layout";
import type { Scene } from "./scene";

export class Overview {
  private readonly counts = new RememberedCounts();

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly scene: Scene,
  ) {}

  draw(): void {
    const { trace, view, theme } = this.scene;
    const [context] = contextOf(this.canvas, view.width, OVERVIEW);
    context.clearRect(0, 0, view.width, OVERVIEW);
    context.font = SMALL;
    context.fillStyle = theme.muted;
    context.fillText(`whole recording: ${duration(trace.summary.length)}`, 8, OVERVIEW / 2);
    context.fillStyle = theme.states[IDLE];
    context.fillRect(GUTTER, 4, view.width - GUTTER, OVERVIEW - 8);
    this.drawCounts(context);
    drawFrame(context, this.scene);
  }

  /** The lock held in the upper half, threads waiting in the lower one. */
  private drawCounts(context: CanvasRenderingContext2D): void {
    const { view, theme, watched } = this.scene;
    if (!watched) return;
    const columns = Math.max(1, Math.round(view.width - GUTTER));
    const { held, waiting } = this.counts.of(watched, 0, view.length, columns);
    const half = (OVERVIEW - 8) / 2;
    drawColumns(context, held, 1, 4 + half, half, theme.states[RUNNING]);
    drawColumns(context, waiting, highest(waiting), OVERVIEW - 4, half, theme.states[WAITING]);
  }
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
