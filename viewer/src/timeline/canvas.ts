// What all canvases of the timeline need.
import { shortened } from "../format";
import { FONT, pixelRatio } from "./layout";

/** A context for a canvas of this size in CSS pixels, and the number of real pixels in one of them. */
export function contextOf(canvas: HTMLCanvasElement, width: number, height: number): [CanvasRenderingContext2D, number] {
  const ratio = pixelRatio();
  const [wide, tall] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== tall) {
    [canvas.width, canvas.height] = [wide, tall];
    canvas.style.height = `${height}px`;
    canvas.style.width = `${width}px`;
  }
  const context = canvas.getContext("2d", { alpha: true }) as CanvasRenderingContext2D;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.font = FONT;
  context.textBaseline = "middle";
  return [context, ratio];
}

/** A text, cut in the middle to what fits into a width. */
export function fitted(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  let [low, high] = [1, [...text].length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(shortened(text, middle)).width <= width) low = middle;
    else high = middle - 1;
  }
  return low > 1 ? shortened(text, low) : "";
}
