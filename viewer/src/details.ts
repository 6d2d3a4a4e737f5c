// What is selected in the timeline, in words, with ways to go on from there.
import { h } from "./dom";
import { clean, duration, moment, percent } from "./format";
import { swatch } from "./swatch";
import type { Facts } from "./timeline/facts";
import type { Timeline } from "./timeline/timeline";
import { STATES, type Trace, WAITING } from "./trace";

const MOST_OTHERS = 12;

export function details(trace: Trace, timeline: Timeline): HTMLElement {
  const panel = h("div", { class: "details", "aria-live": "polite" });
  const show = (facts: Facts | null) => {
    const hint = h("span", { class: "muted" }, "Select a state in the timeline to see which threads held the lock meanwhile.");
    panel.replaceChildren(...(facts ? describe(trace, timeline, facts) : [hint]));
  };
  timeline.onselect = show;
  show(null);
  return panel;
}

function describe(trace: Trace, timeline: Timeline, facts: Facts): HTMLElement[] {
  const { name, state, start, end, what, others, lock, marks } = facts;
  const length = end - start;
  const parts = [
    h(
      "p",
      {},
      h("b", {}, h("bdi", {}, clean(name))),
      " ",
      swatch(state),
      ` ${STATES[state]} for ${duration(length)}, from ${moment(start, length)} to ${moment(end, length)}`,
      what ? ` (${clean(what)})` : "",
      marks.length > 0 ? `, in ${marks.map((mark) => clean(mark.name)).join(", ")}` : "",
    ),
  ];
  if (!lock) return parts;
  const held = others.reduce((sum, [, time]) => sum + time, 0);
  const title = state === WAITING ? "The lock was held meanwhile by" : others.length > 0 ? "Waiting behind it meanwhile" : "No thread waited behind it.";
  const chips = others.slice(0, MOST_OTHERS).map(([thread, time]) =>
    h(
      "button",
      { type: "button", class: "chip", onclick: () => timeline.follow(thread) },
      h("bdi", {}, clean(trace.threads[thread].name)),
      ` ${duration(time)} (${percent(time / length)})`,
    ),
  );
  const more = others.length > MOST_OTHERS ? h("span", { class: "muted" }, `and ${others.length - MOST_OTHERS} more`) : null;
  const free = state === WAITING && length - held > 0 ? h("span", { class: "muted" }, `no thread (being handed over): ${duration(length - held)} (${percent((length - held) / length)})`) : null;
  parts.push(h("p", {}, `${title} `, ...chips, more, free));
  return parts;
}
