import { h } from "./dom";
import { STATES } from "./trace";

/** A sample of a state's colour. */
export function swatch(state: number): HTMLElement {
  return h("span", { class: `swatch ${STATES[state]}` });
}
