// What is said beside the pointer about the state below it.
import { h } from "../dom";
import { clean, duration, moment, percent } from "../format";
import { swatch } from "../swatch";
import { STATES, type Trace, WAITING } from "../trace";
import { type Facts, factsAbout } from "./facts";
import { stateUnder } from "./find";
import type { Scene } from "./scene";

const MOST_OTHERS = 4;

export function tooltipDrawer(tooltip: HTMLElement, scroller: HTMLElement, scene: Scene): () => void {
  return () => {
    const { pointer, trace, view } = scene;
    const state = pointer && !pointer.head ? stateUnder(scene, pointer.x, pointer.y + scroller.scrollTop) : null;
    tooltip.hidden = !state;
    if (!state || !pointer) return;
    tooltip.replaceChildren(...lines(trace, factsAbout(trace, state)));
    const right = pointer.x > view.width / 2;
    tooltip.style.left = right ? "" : `${pointer.x + 14}px`;
    tooltip.style.right = right ? `${view.width - pointer.x + 14}px` : "";
    tooltip.style.top = `${scroller.offsetTop + pointer.y + 18}px`;
  };
}

function lines({ threads }: Trace, { name, state, start, end, what, others, marks }: Facts): HTMLElement[] {
  const all = [
    h("div", { class: "thread" }, h("bdi", {}, clean(name))),
    h("div", {}, swatch(state), ` ${STATES[state]} for ${duration(end - start)}`),
    h("div", { class: "muted" }, `from ${moment(start, end - start)}${what ? ` · ${clean(what)}` : ""}`),
  ];
  if (others.length > 0) all.push(h("div", {}, state === WAITING ? "Held meanwhile by" : "Waiting meanwhile"));
  for (const [thread, time] of others.slice(0, MOST_OTHERS)) {
    all.push(h("div", { class: "share" }, h("bdi", {}, clean(threads[thread].name)), ` ${percent(time / (end - start))}`));
  }
  if (others.length > MOST_OTHERS) all.push(h("div", { class: "muted" }, `and ${others.length - MOST_OTHERS} more`));
  if (marks.length > 0) all.push(h("div", { class: "marks" }, marks.map((mark) => clean(mark.name)).join(", ")));
  return all;
}
