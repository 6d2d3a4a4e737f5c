// What is selected in the timeline, in words, with ways to go on from there.
import { h, label } from "./dom";
import { clean, duration, moment, percent, plural } from "./format";
import { stackList } from "./frames";
import { byGroup } from "./sums";
import { swatch } from "./swatch";
import { rangeTable } from "./range";
import { stackOfWait, stacksDuring } from "./stacks";
import { factsAbout, factsAboutMark, type Selection } from "./timeline/facts";
import type { Timeline } from "./timeline/timeline";
import { type Share, STATES, type Trace, WAITING } from "./trace";
import { heldBy, heldByNone } from "./words";

const MOST_OTHERS = 10;
const MOST_STACKS = 4;
/** Stacks with less than this share of the time are only counted. */
const LEAST_SHARE = 0.01;

export function details(traces: Trace[], timeline: Timeline): HTMLElement {
  const selected = h("div", { class: "details", "aria-live": "polite" });
  const ranged = h("div", { class: "ranged", "aria-live": "polite" });
  const show = (selection: Selection | null) => {
    const hint = h("span", { class: "muted" }, "Select a state in the timeline to see which threads held the lock meanwhile.");
    selected.replaceChildren(...(!selection ? [hint] : selection.mark ? aboutMark(selection) : aboutState(timeline, selection)));
  };
  let pending = 0;
  timeline.listen({
    select: show,
    range: (range) => {
      clearTimeout(pending);
      pending = window.setTimeout(() => ranged.replaceChildren(...(range ? [rangeTable(traces, timeline, range)] : [])), 60);
    },
  });
  show(null);
  return h("div", {}, ranged, selected);
}

function aboutState(timeline: Timeline, selection: Selection): HTMLElement[] {
  const { trace, name, state, start, end, what, others, lock, marks } = factsAbout(selection);
  const length = end - start;
  const parts = [
    h(
      "p",
      {},
      h("b", {}, label(name)),
      " ",
      swatch(state),
      ` ${STATES[state]} for ${duration(length)}, from ${moment(start, length)} to ${moment(end, length)}`,
      what ? ` (${clean(what)})` : "",
      marks.length > 0 ? `, in ${marks.map((mark) => clean(mark.name)).join(", ")}` : "",
    ),
  ];
  if (!lock) return parts;
  const waits = state === WAITING;
  const held = others.reduce((sum, [, time]) => sum + time, 0);
  const title = waits ? heldBy(lock.summary) : others.length > 0 ? "Waiting behind it meanwhile" : "No thread waited behind it.";
  const share = (time: number) => (waits ? `${duration(time)} (${percent(time / length)})` : duration(time));
  const none = heldByNone(lock.summary);
  const free = waits && none && length - held > 0 ? h("span", { class: "muted" }, `${none}: ${share(length - held)}`) : null;
  parts.push(h("p", {}, `${title} `, ...chips(trace, others, share, (thread) => timeline.follow(thread)), free));
  return [...parts, ...stacksOf(selection, lock.id, waits ? others.map(([other]) => other) : [selection.thread], start, end)];
}

/** The stacks of the threads that held a lock between two moments, and of the selected thread if it waited meanwhile. */
function stacksOf({ trace, thread }: Selection, lock: number, holders: number[], start: number, end: number): HTMLElement[] {
  const stacks = stacksDuring(trace, holders, lock, start, end);
  const own = stackOfWait(trace, thread, start, end);
  const share = (time: number) => `for ${duration(time)} (${percent(time / (end - start))})`;
  const shown = stacks.slice(0, MOST_STACKS).filter(([, time], i) => i === 0 || time / (end - start) >= LEAST_SHARE);
  const all = shown.map(([stack, time]) => stackList(stack, h("b", {}, "Held the lock"), ` ${share(time)}`));
  const rest = stacks.length - shown.length;
  if (rest > 0) all.push(h("p", { class: "muted" }, `and ${plural(rest, "more stack")} of holders`));
  if (own) all.push(stackList(own, h("b", {}, "Waited for it")));
  return all.length > 0 ? [h("div", { class: "stacks" }, ...all)] : [];
}

/** Each other thread, or each pool if there are many, to be followed. */
function chips(trace: Trace, others: Share[], share: (time: number) => string, follow?: (thread: number) => void): (HTMLElement | null)[] {
  const pools = others.length > MOST_OTHERS;
  const all = pools
    ? byGroup(trace, others).map(([group, time, threads]): [string, number, number] => [`${group.name} (${plural(threads.length, "thread")})`, time, threads[0]])
    : others.map(([thread, time]): [string, number, number] => [trace.threads[thread].name, time, thread]);
  const chip = ([name, time, thread]: [string, number, number]) => {
    const text = [label(name), ` ${share(time)}`];
    return follow ? h("button", { type: "button", class: "chip", onclick: () => follow(thread) }, ...text) : h("span", { class: "chip" }, ...text);
  };
  const more = all.length > MOST_OTHERS ? h("span", { class: "muted" }, `and ${all.length - MOST_OTHERS} more `) : null;
  return [...all.slice(0, MOST_OTHERS).map(chip), more];
}

function aboutMark({ trace, thread, mark }: Selection): HTMLElement[] {
  if (!mark) return [];
  const { times, behind, waiters } = factsAboutMark(trace, thread, mark);
  const length = mark.end - mark.start;
  const states = times.flatMap((time, state) => (time > 0 ? [h("span", { class: "share" }, swatch(state), ` ${STATES[state]} ${duration(time)} (${percent(time / length)}) `)] : []));
  const waited = waiters.reduce((sum, [, time]) => sum + time, 0);
  return [
    h(
      "p",
      {},
      h("b", { class: "marks" }, label(mark.name, 80)),
      " in ",
      label(trace.threads[thread].name),
      ` took ${duration(length)}, from ${moment(mark.start, length)} to ${moment(mark.end, length)}`,
    ),
    h("p", {}, ...states),
    ...(behind.length > 0 ? [h("p", {}, "It waited behind ", ...chips(trace, behind, duration))] : []),
    h("p", {}, waited > 0 ? `While it held the lock, others waited ${duration(waited)} in sum: ` : "No thread waited behind it.", ...chips(trace, waiters, duration)),
  ];
}
