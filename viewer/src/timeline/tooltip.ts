// What is said beside the pointer about what is below it.
import { nameOf, placeOf } from "../code";
import { h, label } from "../dom";
import { clean, duration, moment, percent, plural } from "../format";
import { stackAt } from "../stacks";
import { byGroup } from "../sums";
import { swatch } from "../swatch";
import { STATES, WAITING } from "../trace";
import { type Row, rowAt } from "./arrange";
import { factsAbout, type Selection } from "./facts";
import { statesAt, under } from "./find";
import type { Pointer, Scene } from "./scene";

const MOST_OTHERS = 4;

export function tooltipDrawer(tooltip: HTMLElement, scroller: HTMLElement, scene: Scene): () => void {
  return () => {
    const { pointer, view } = scene;
    const said = pointer && !pointer.head ? linesAt(scene, { ...pointer, y: pointer.y + scroller.scrollTop }) : [];
    tooltip.hidden = said.length === 0;
    if (!pointer || said.length === 0) return;
    tooltip.replaceChildren(...said);
    const right = pointer.x > view.width / 2;
    tooltip.style.left = right ? "" : `${pointer.x + 14}px`;
    tooltip.style.right = right ? `${view.width - pointer.x + 14}px` : "";
    tooltip.style.top = `${scroller.offsetTop + pointer.y + 18}px`;
  };
}

function linesAt(scene: Scene, { x, y }: Pointer): HTMLElement[] {
  const row = rowAt(scene.rows, y);
  if (!row) return [];
  if (row.kind === "process" || x < scene.view.gutter) return [whole(row)];
  if (row.kind === "pool") return aboutPool(row, scene.view.timeAt(x));
  const found = under(scene, x, y);
  return found ? about(found, scene.view.timeAt(x)) : [];
}

/** The name of a row, which may be cut in the row itself. */
function whole({ kind, trace, group, thread }: Row): HTMLElement {
  const name = kind === "process" ? trace.title : kind === "pool" ? `${group?.name} (${plural(group?.threads.length ?? 0, "thread")})` : trace.threads[thread].name;
  return h("div", { class: "thread" }, label(name, 300));
}

function aboutPool({ trace, group }: Row, time: number): HTMLElement[] {
  if (!group) return [];
  const counts = statesAt(trace, group.threads, time);
  const states = counts.flatMap((number, state) => (number > 0 ? [h("div", {}, swatch(state), ` ${number} ${STATES[state]}`)] : []));
  return [h("div", { class: "thread" }, label(group.name), ` ×${group.threads.length}`), ...(states.length > 0 ? states : [h("div", { class: "muted" }, "no thread is alive")])];
}

function about(selection: Selection, time: number): HTMLElement[] {
  const { trace, name, state, start, end, what, others, marks } = factsAbout(selection);
  const { mark } = selection;
  if (mark) {
    return [
      h("div", { class: "thread" }, label(name)),
      h("div", { class: "marks" }, label(mark.name, 80)),
      h("div", { class: "muted" }, `${duration(mark.end - mark.start)} from ${moment(mark.start, mark.end - mark.start)}`),
    ];
  }
  const all = [
    h("div", { class: "thread" }, label(name)),
    h("div", {}, swatch(state), ` ${STATES[state]} for ${duration(end - start)}`),
    h("div", { class: "muted" }, `from ${moment(start, end - start)}${what ? ` · ${clean(what)}` : ""}`),
  ];
  const stack = stackAt(trace, selection.thread, time);
  if (stack) all.push(h("div", {}, label(nameOf(stack), 60)), h("div", { class: "muted" }, label(placeOf(stack), 60)));
  const groups = byGroup(trace, others);
  if (groups.length > 0) all.push(h("div", {}, state === WAITING ? "Held meanwhile by" : "Waiting meanwhile"));
  for (const [group, time, threads] of groups.slice(0, MOST_OTHERS)) {
    const who = threads.length === 1 ? trace.threads[threads[0]].name : `${group.name} (${threads.length})`;
    const how = state === WAITING ? percent(time / (end - start)) : duration(time);
    all.push(h("div", { class: "share" }, label(who), ` ${how}`));
  }
  if (groups.length > MOST_OTHERS) all.push(h("div", { class: "muted" }, `and ${groups.length - MOST_OTHERS} more`));
  if (marks.length > 0) all.push(h("div", { class: "marks" }, marks.map((each) => clean(each.name)).join(", ")));
  return all;
}
