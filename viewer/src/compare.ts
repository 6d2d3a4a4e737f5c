// Two recordings side by side.
import { h } from "./dom";
import { clean, count, duration, percent } from "./format";

export interface Measure {
  name: string;
  unit: "time" | "share" | "number";
  before: number;
  after: number;
  /** Whether less of it is better, more is, or neither. */
  better: "less" | "more" | "neither";
}

export interface ThreadChange {
  name: string;
  before: [running: number, waiting: number] | null;
  after: [running: number, waiting: number] | null;
}

export interface Comparison {
  measures: Measure[];
  threads: ThreadChange[];
}

const FORMATS = {
  time: duration,
  share: percent,
  number: (value: number) => (Number.isInteger(value) ? count(value) : value.toFixed(2)),
};

function change({ before, after, better }: Measure): HTMLElement {
  if (before === after) return h("td", {}, "=");
  const text = before === 0 ? "new" : after === 0 ? "gone" : `× ${(after / before).toPrecision(3)}`;
  const good = better === "less" ? after < before : after > before;
  const notable = better !== "neither" && Math.abs(after - before) > 0.05 * Math.max(before, after);
  return h("td", { class: notable ? (good ? "good" : "bad") : "" }, `${text}${notable ? (good ? " better" : " worse") : ""}`);
}

export function comparison({ measures, threads }: Comparison): HTMLElement[] {
  const row = (measure: Measure) => {
    const format = FORMATS[measure.unit];
    return h("tr", {}, h("th", { scope: "row" }, measure.name), h("td", {}, format(measure.before)), h("td", {}, format(measure.after)), change(measure));
  };
  const pair = (times: [number, number] | null) => (times ? times.map((time) => h("td", {}, duration(time))) : [h("td", {}, "–"), h("td", {}, "–")]);
  const thread = ({ name, before, after }: ThreadChange) => h("tr", {}, h("th", { scope: "row" }, h("bdi", {}, clean(name))), ...pair(before), ...pair(after));
  const head = (...titles: string[]) => h("thead", {}, h("tr", {}, ...titles.map((title) => h("th", { scope: "col" }, title))));
  return [
    h("div", { class: "table" }, h("table", { class: "compare" }, h("caption", {}, "Before and after"), head("", "before", "after", "change"), h("tbody", {}, ...measures.map(row)))),
    h(
      "div",
      { class: "table" },
      h("table", { class: "compare" }, h("caption", {}, "Threads by name"), head("thread", "running before", "waiting before", "running after", "waiting after"), h("tbody", {}, ...threads.map(thread))),
    ),
  ];
}
