// Draws what is above the rows: the axis of time and, of a recording alone, two charts of the lock.
import { clean, duration, moment, percent } from "../format";
import { RUNNING, WAITING } from "../trace";
import { contextOf } from "./canvas";
import { drawChart, drawLabel, valueHere } from "./chart";
import { highest, rememberedCounts } from "./counts";
import { drawCrosshair } from "./crosshair";
import { AXIS, CHART, pixelRatio, SMALL } from "./layout";
import { drawRange } from "./range";
import type { Scene, Watched } from "./scene";

export function headDrawer(canvas: HTMLCanvasElement, scene: Scene): () => void {
  const countsOf = rememberedCounts();
  return () => {
    const { view, traces, watched } = scene;
    const alone = traces.length === 1 ? watched[0] : undefined;
    const height = AXIS + (alone ? 2 * CHART : 0);
    const [context] = contextOf(canvas, view.width, height);
    context.clearRect(0, 0, view.width, height);
    drawAxis(context, scene);
    if (alone) drawCharts(context, scene, alone, countsOf);
    drawRange(context, scene, height);
    drawCrosshair(context, scene, height);
  };
}

function drawCharts(context: CanvasRenderingContext2D, scene: Scene, watched: Watched, countsOf: ReturnType<typeof rememberedCounts>): void {
  const { view, theme } = scene;
  const columns = Math.max(1, Math.round((view.width - view.gutter) * pixelRatio()));
  const { held, waiting } = countsOf(watched, view.from, view.to, columns);
  const most = Math.ceil(highest(waiting));
  drawChart(context, scene, { top: AXIS, height: CHART, values: held, most: 1, color: theme.states[RUNNING] });
  drawLabel(context, scene, AXIS, `${clean(watched.lock.name)} held`, valueHere(held, scene, percent));
  drawChart(context, scene, { top: AXIS + CHART, height: CHART, values: waiting, most, color: theme.states[WAITING] });
  drawLabel(context, scene, AXIS + CHART, "threads waiting", `${valueHere(waiting, scene, mean)}, of ${most}`);
}

function mean(count: number): string {
  return count.toFixed(count < 10 ? 1 : 0);
}

function drawAxis(context: CanvasRenderingContext2D, { view, theme }: Scene): void {
  const step = niceStep((view.span / (view.width - view.gutter)) * 90);
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
