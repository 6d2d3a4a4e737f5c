// What changed between two recordings.
import { h, label } from "./dom";
import { count, duration, percent } from "./format";
import { table } from "./table";
import type { Group, GroupSummary, Trace } from "./trace";

export interface Measure {
  name: string;
  unit: "time" | "share" | "number";
  before: number;
  after: number;
  /** How they differ, in words, and whether that is better or worse. */
  change: string;
}

/** Threads of both recordings that belong together. */
export interface GroupChange {
  /** With `*` in place of numbers that differ. */
  name: string;
}

/** What others lost to a function in both recordings. */
export interface FunctionChange {
  function: string;
  file: string;
  before: number;
  after: number;
  change: string;
}

export interface Comparison {
  measures: Measure[];
  /** The functions to which more time is lost now first; none unless both recordings have stacks. */
  code: { functions: FunctionChange[] };
  /** The groups that ran and waited longest first. */
  threads: GroupChange[];
}

/** The group of a recording that a name stands for. */
export function groupNamed({ groups }: Trace, name: string): Group | undefined {
  const pattern = name.split("*").map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&")).join("\\d+");
  return groups.find((group) => group.name === name) ?? groups.find((group) => new RegExp(`^${pattern}$`, "u").test(group.name));
}

const FORMATS = {
  time: duration,
  share: percent,
  number: (value: number) => (Number.isInteger(value) ? count(value) : value.toFixed(2)),
};

/** The class of a change. */
function judged({ change }: { change: string }): string {
  return change.endsWith(", better") ? "good" : change.endsWith(", worse") ? "bad" : "";
}

/** The sentence that says what became of the waiting. */
export function outcome({ measures }: Comparison): HTMLElement {
  const waited = measures.find(({ name }) => name === "time waited");
  const p99 = measures.find(({ name }) => name === "wait p99");
  if (!waited) return h("section", { class: "verdict note" }, h("h2", {}, "Before and after"));
  const judgement = judged(waited);
  const how = { good: "less than before", bad: "longer than before" }[judgement] ?? "about as long as before";
  const figure = ({ before, after, change }: Measure) => `${duration(before)} before, ${duration(after)} after (${change.replace(/, (better|worse)$/, "")})`;
  return h(
    "section",
    { class: `verdict ${{ good: "better", bad: "problem" }[judgement] ?? "note"}`, "aria-label": "Verdict" },
    h("h2", {}, `Threads waited for the lock ${how}.`),
    h("p", { class: "figures" }, `All together: ${figure(waited)}.`, p99 ? ` 99 in 100 waits took at most: ${figure(p99)}.` : ""),
  );
}

export function comparison({ measures, threads, code }: Comparison, [before, after]: Trace[]): HTMLElement[] {
  const row = (measure: Measure) => {
    const format = FORMATS[measure.unit];
    return h("tr", {}, h("th", { scope: "row" }, measure.name), h("td", {}, format(measure.before)), h("td", {}, format(measure.after)), h("td", { class: judged(measure) }, measure.change));
  };
  const OF: ((summary: GroupSummary) => number | null)[] = [
    ({ times }) => times.running + times.gc,
    ({ times }) => times.waiting,
    ({ contended }) => (contended.count > 0 ? contended.p50 : null),
    ({ contended }) => (contended.count > 0 ? contended.p99 : null),
  ];
  const cell = (group: Group | undefined, of: (summary: GroupSummary) => number | null) => {
    const time = group ? of(group.summary) : null;
    return h("td", {}, time === null ? "–" : duration(time));
  };
  const group = ({ name }: GroupChange) => {
    const sides = [groupNamed(before, name), groupNamed(after, name)];
    return h("tr", {}, h("th", { scope: "row" }, label(name)), ...OF.flatMap((of) => sides.map((side) => cell(side, of))));
  };
  const head = (...titles: string[]) => h("thead", {}, h("tr", {}, ...titles.map((title) => h("th", { scope: "col" }, title))));
  const pairs = ["running", "waiting", "wait p50", "wait p99"].flatMap((title) => [`${title} before`, "after"]);
  return [
    h("div", { class: "table", tabindex: 0, role: "region", "aria-label": "Before and after" }, h("table", { class: "compare" }, h("caption", {}, "Before and after"), head("", "before", "after", "change"), h("tbody", {}, ...measures.map(row)))),
    h("div", { class: "table", tabindex: 0, role: "region", "aria-label": "Threads by group" }, h("table", { class: "compare pairs" }, h("caption", {}, "Threads, those of a pool together; waits: contended ones"), head("threads", ...pairs), h("tbody", {}, ...threads.map(group)))),
    ...(code.functions.length > 0 ? [functionTable(code.functions)] : []),
  ];
}

const FIRST_FUNCTIONS = 12;

function functionTable(functions: FunctionChange[]): HTMLElement {
  return table<FunctionChange>(
    "How long others waited behind a function",
    [
      { title: "function", cell: (row) => label(row.function), key: (row) => row.function, heads: true },
      { title: "before", cell: ({ before }) => duration(before), key: ({ before }) => before },
      { title: "after", cell: ({ after }) => duration(after), key: ({ after }) => after },
      { title: "change", cell: (row) => h("span", { class: judged(row) }, row.change), key: ({ before, after }) => after - before },
      { title: "file", prose: true, cell: ({ file }) => label(file, 60), key: ({ file }) => file },
    ],
    functions,
    { first: FIRST_FUNCTIONS },
  );
}
