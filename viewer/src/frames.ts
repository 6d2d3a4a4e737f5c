// Stacks in words, innermost function first.
import { type Frame, framesOf, nameOf, placeOf } from "./code";
import { h, label } from "./dom";

/** So many frames are shown at once; the others open. */
const FIRST_FRAMES = 5;

/** A stack below a title. */
export function stackList(stack: Frame, ...title: (Node | string)[]): HTMLElement {
  const frames = framesOf(stack);
  const rest = frames.slice(FIRST_FRAMES);
  const opener = () => h("details", {}, h("summary", {}, `${rest.length} more callers`), list(rest));
  return h("div", { class: "stack" }, h("p", {}, ...title), list(frames.slice(0, FIRST_FRAMES)), rest.length > 0 ? opener() : null);
}

function list(frames: Frame[]): HTMLElement {
  const item = (frame: Frame) => h("li", {}, label(nameOf(frame), 60), " ", h("span", { class: "muted" }, label(placeOf(frame), 60)));
  return h("ol", {}, ...frames.map(item));
}
