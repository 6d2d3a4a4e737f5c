// The line that follows the pointer through rows and charts.
import type { Scene } from "./scene";

export function drawCrosshair(context: CanvasRenderingContext2D, { pointer, theme, view }: Scene, height: number): void {
  if (!pointer || pointer.x < view.gutter) return;
  context.fillStyle = theme.muted;
  context.globalAlpha = 0.5;
  context.fillRect(Math.round(pointer.x), 0, 1, height);
  context.globalAlpha = 1;
}
