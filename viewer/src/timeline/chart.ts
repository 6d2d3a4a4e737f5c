// Draws how a number of the lock changes over time.
import { fitted } from "./canvas";
import { FONT, SMALL } from "./layout";
import type { Scene } from "./scene";

export interface Chart {
  top: number;
  height: number;
  values: Float64Array;
  /** The value at the upper edge. */
  most: number;
  color: string;
}

/** Between two thin lines. */
export function drawChart(context: CanvasRenderingContext2D, { view, theme }: Scene, { top, height, values, most, color }: Chart): void {
  const [base, tall] = [top + height - 3, height - 9];
  const left = view.gutter;
  const width = (view.width - left) / values.length;
  context.fillStyle = theme.line;
  context.fillRect(left, base, view.width - left, 1);
  context.fillRect(left, base - tall, view.width - left, 0.5);
  context.beginPath();
  context.moveTo(left, base);
  values.forEach((value, column) => {
    const y = base - (value / most) * tall;
    context.lineTo(left + column * width, y);
    context.lineTo(left + (column + 1) * width, y);
  });
  context.lineTo(view.width, base);
  context.fillStyle = color;
  context.globalAlpha = 0.75;
  context.fill();
  context.globalAlpha = 1;
}

/** Two lines beside a chart: what it shows, and how much of it there is. */
export function drawLabel(context: CanvasRenderingContext2D, { view, theme }: Scene, top: number, first: string, second: string, left = 8): void {
  context.font = FONT;
  context.fillStyle = theme.text;
  context.fillText(fitted(context, first, view.gutter - left - 8), left, top + 15);
  context.font = SMALL;
  context.fillStyle = theme.muted;
  context.fillText(fitted(context, second, view.gutter - left - 8), left, top + 31);
}

/** The value below the pointer, or the average. */
export function valueHere(values: Float64Array, { pointer, view }: Scene, format: (value: number) => string): string {
  const column = pointer && pointer.x >= view.gutter ? Math.floor(((pointer.x - view.gutter) / (view.width - view.gutter)) * values.length) : -1;
  const average = values.reduce((a, b) => a + b, 0) / values.length;
  return column >= 0 ? `${format(values[column] ?? 0)} here` : `${format(average)} on average`;
}
