// What the program marked: how long it took, what it lost to the lock, and what others lost meanwhile.
import { h, label } from "./dom";
import { clean, duration, percent } from "./format";
import { type Column, table } from "./table";
import { spanColumns } from "./tables";
import type { Lock, MarkSummary, Trace } from "./trace";

const MOST_BLAMED = 12;

export function markTable(trace: Trace): HTMLElement {
  const { marks } = trace.summary;
  const further: Column<MarkSummary>[] = [
    { title: "p50", cell: ({ lengths }) => duration(lengths.p50), key: ({ lengths }) => lengths.p50 },
    { title: "p99", cell: ({ lengths }) => duration(lengths.p99), key: ({ lengths }) => lengths.p99 },
    { title: "lost each, p50", cell: ({ losses }) => duration(losses.p50), key: ({ losses }) => losses.p50 },
    { title: "p99", cell: ({ losses }) => duration(losses.p99), key: ({ losses }) => losses.p99 },
    { title: "others waited meanwhile", cell: ({ inflicted }) => duration(inflicted), key: ({ inflicted }) => inflicted },
  ];
  const all = [...spanColumns(marks), ...further];
  return table("What threads did during marks, what each lost in contended waits, and how long others waited for the lock that it held", all, marks);
}

/** What held a lock while others waited, by group and mark, as a bar for each. */
export function blameByMark(trace: Trace, lock: Lock): HTMLElement | null {
  const { by_mark: all, waited } = lock.summary;
  if (!all.some(({ mark }) => mark !== null)) return null;
  const item = ({ group, mark, inflicted }: (typeof all)[number]) => {
    const share = waited > 0 ? inflicted / waited : 0;
    const bar = h("span", { class: "share-bar", "aria-hidden": "true" });
    bar.style.setProperty("--share", share.toFixed(4));
    const what = mark === null ? h("span", {}, label(trace.groups[group].name), " outside of marks") : h("span", {}, label(trace.summary.marks[mark].name, 60), " in ", label(trace.groups[group].name));
    return h("li", {}, bar, h("b", {}, percent(share)), " ", what, h("span", { class: "muted" }, ` ${duration(inflicted)}`));
  };
  return h(
    "div",
    { class: "by-mark" },
    h("p", { class: "muted" }, `Of the time that others waited for ${clean(lock.name)}, it was held during (a mark within another one counts for both)`),
    h("ul", {}, ...all.slice(0, MOST_BLAMED).map(item)),
  );
}
