// Draws the selected stretch of time.
import type { Scene } from "./scene";

export function drawRange(context: CanvasRenderingContext2D, { view, theme, range }: Scene, height: number): void {
  if (!range) return;
  const [left, right] = [view.xOf(range.from), view.xOf(range.to)].map((x) => Math.min(Math.max(x, view.gutter), view.width));
  context.fillStyle = theme.accent;
  context.globalAlpha = 0.16;
  context.fillRect(left, 0, right - left, height);
  context.globalAlpha = 1;
  for (const x of [left, right]) context.fillRect(Math.round(x) - 0.5, 0, 1, height);
}
