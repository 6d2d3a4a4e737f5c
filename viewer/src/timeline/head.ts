// Draws what is above the rows: the axis of time, and two charts of the lock.
import { clean, duration, moment, percent } from "../format";
import { RUNNING, WAITING } from "../trace";
import { contextOf, fitted } from "./canvas";
import { highest, rememberedCounts } from "./counts";
import { drawCrosshair } from "./crosshair";
import { AXIS, CHART, FONT, GUTTER, SMALL } from "./layout";
import type { Scene } from "./scene";

interface Chart {
  top: number;
  values: Float64Array;
  most: number;
  label: string;
  color: string;
  format: (value: number) => string;
}

export function headDrawer(canvas: HTMLCanvasElement, scene: Scene): () => void {
  const countsOf = rememberedCounts();
  return () => {
    const { view, watched, theme } = scene;
    const height = AXIS + (watched ? 2 * CHART : 0);
    const [context, ratio] = contextOf(canvas, view.width, height);
    context.clearRect(0, 0, view.width, height);
    drawAxis(context, scene);
    if (watched) {
      const columns = Math.max(1, Math.round((view.width - GUTTER) * ratio));
      const { held, waiting } = countsOf(watched, view.from, view.to, columns);
      const color = (state: number) => theme.states[state];
      drawChart(context, scene, { top: AXIS, values: held, most: 1, label: `${clean(watched.lock.name)} held`, color: color(RUNNING), format: percent });
      drawChart(context, scene, { top: AXIS + CHART, values: waiting, most: Math.ceil(highest(waiting)), label: "threads waiting", color: color(WAITING), format: mean });
    }
    drawCrosshair(context, scene, height);
  };
}

function mean(count: number): string {
  return count.toFixed(count < 10 ? 1 : 0);
}

function drawAxis(context: CanvasRenderingContext2D, { view, theme }: Scene): void {
  const step = niceStep((view.span / (view.width - GUTTER)) * 110);
  context.font = SMALL;
  context.fillStyle = theme.muted;
  context.fillText(`${duration(view.span)} shown`, 8, AXIS / 2);
  for (let time = Math.ceil(view.from / step) * step; time <= view.to; time += step) {
    const x = view.xOf(time);
    context.fillStyle = theme.line;
    context.fillRect(Math.round(x), AXIS - 6, 1, 6);
    context.fillStyle = theme.muted;
    if (x < view.width - 50) context.fillText(moment(time, step), x + 4, AXIS / 2);
  }
}

/** A length of time that reads well between two marks of the axis. */
function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= least) ?? 10 * power;
}

function drawChart(context: CanvasRenderingContext2D, { view, theme, pointer }: Scene, { top, values, most, label, color, format }: Chart): void {
  const [base, tall] = [top + CHART - 3, CHART - 9];
  const width = (view.width - GUTTER) / values.length;
  context.fillStyle = theme.line;
  context.fillRect(GUTTER, base, view.width - GUTTER, 1);
  context.fillRect(GUTTER, base - tall, view.width - GUTTER, 0.5);
  context.beginPath();
  context.moveTo(GUTTER, base);
  values.forEach((value, column) => {
    const y = base - (value / most) * tall;
    context.lineTo(GUTTER + column * width, y);
    context.lineTo(GUTTER + (column + 1) * width, y);
  });
  context.lineTo(view.width, base);
  context.fillStyle = color;
  context.globalAlpha = 0.75;
  context.fill();
  context.globalAlpha = 1;
  context.font = FONT;
  context.fillStyle = theme.text;
  context.fillText(fitted(context, label, GUTTER - 16), 8, top + 15);
  context.font = SMALL;
  context.fillStyle = theme.muted;
  const column = pointer && pointer.x >= GUTTER ? Math.floor((pointer.x - GUTTER) / width) : -1;
  const average = values.reduce((a, b) => a + b, 0) / values.length;
  const now = column >= 0 ? `${format(values[column] ?? 0)} here` : `${format(average)} on average`;
  context.fillText(fitted(context, `${now}, of ${format(most)}`, GUTTER - 16), 8, top + 31);
}
