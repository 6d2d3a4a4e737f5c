// The sums of a selected stretch of time, by group.
import { h, label } from "./dom";
import { count, duration, moment, percent } from "./format";
import { type Sums, sumsOf } from "./sums";
import { swatch } from "./swatch";
import type { Range } from "./timeline/scene";
import type { Timeline } from "./timeline/timeline";
import { type Group, STATES, type Trace } from "./trace";

const MOST_GROUPS = 12;

export function rangeTable(traces: Trace[], timeline: Timeline, range: Range): HTMLElement {
  const { from, to } = range;
  const length = to - from;
  const button = (text: string, onclick: () => void) => h("button", { type: "button", onclick }, text);
  return h(
    "div",
    { class: "details" },
    h(
      "p",
      {},
      h("b", {}, `${duration(length)} selected`),
      `, from ${moment(from, length)} to ${moment(to, length)} `,
      button("Zoom to it", () => timeline.view.show(from, to)),
      " ",
      button("Clear", () => timeline.selectRange(null)),
    ),
    ...traces.filter((trace) => trace.offset < to && trace.end > from).map((trace) => tableOf(trace, range, traces.length > 1)),
  );
}

function tableOf(trace: Trace, { from, to }: Range, titled: boolean): HTMLElement {
  const total = (sums: Sums) => sums.times.reduce((a, b) => a + b, 0);
  const groups = trace.groups.map((group): [Group, Sums] => [group, sumsOf(trace, group.threads, from, to)]).filter(([, sums]) => total(sums) > 0);
  const all = sumsOf(trace, trace.threads.map((_, thread) => thread), from, to);
  const busy = ({ times }: Sums) => times[0] + times[1] + times[4] + times[5];
  groups.sort((a, b) => busy(b[1]) - busy(a[1]));
  const row = (name: HTMLElement | string, sums: Sums) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, name),
      ...sums.times.map((time) => h("td", { title: percent(time / Math.max(total(sums), 1)) }, time > 0 ? duration(time) : "–")),
      ...[count(sums.waits), ...[sums.p50, sums.p99].map((time) => (sums.waits > 0 ? duration(time) : "–"))].map((text) => h("td", {}, text)),
    );
  const head = STATES.map((name, state) => h("th", { scope: "col" }, swatch(state), ` ${name}`));
  const cut = groups.length > MOST_GROUPS ? h("p", { class: "muted" }, `The ${MOST_GROUPS} busiest of ${count(groups.length)} groups.`) : null;
  return h(
    "div",
    { class: "table", tabindex: 0, role: "region", "aria-label": "Sums of the selected range" },
    h(
      "table",
      {},
      titled ? h("caption", {}, label(trace.title)) : null,
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "threads"), ...head, ...["contended waits", "p50", "p99"].map((title) => h("th", { scope: "col" }, title)))),
      h("tbody", {}, row("all", all), ...groups.slice(0, MOST_GROUPS).map(([group, sums]) => row(h("span", {}, label(group.name), group.threads.length > 1 ? ` ×${count(group.threads.length)}` : ""), sums))),
    ),
    cut,
  );
}
