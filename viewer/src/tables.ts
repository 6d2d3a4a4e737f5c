// The same data as the pictures, in tables.
import { h } from "./dom";
import { clean, count, duration, moment, percent, size } from "./format";
import { swatch } from "./swatch";
import { factsAbout } from "./timeline/facts";
import type { Timeline } from "./timeline/timeline";
import { type LockSummary, type SpanSummary, sliceAt, STATES, type ThreadSummary, type Times, type Trace, upperBound } from "./trace";

const FIRST_ROWS = 100;

interface Column<T> {
  title: string;
  cell: (row: T) => Node | string;
  /** What to sort by; a column without is not sorted. */
  key?: (row: T) => number | string;
  title_cell?: boolean;
}

/** A table whose columns sort when their heads are pressed, long ones cut until asked for. */
function table<T>(caption: string, columns: Column<T>[], rows: T[]): HTMLElement {
  const body = h("tbody");
  let sorted = [...rows];
  let shown = FIRST_ROWS;
  let by: Column<T> | null = null;
  const more = h("button", { type: "button", class: "more", onclick: () => ((shown = Infinity), fill()) }, `Show all ${count(rows.length)}`);
  const fill = () => {
    body.replaceChildren(
      ...sorted.slice(0, shown).map((row) =>
        h("tr", {}, ...columns.map(({ cell, title_cell }) => h(title_cell ? "th" : "td", title_cell ? { scope: "row" } : {}, cell(row)))),
      ),
    );
    more.hidden = rows.length <= shown;
  };
  const sort = (column: Column<T>) => {
    const { key } = column;
    if (!key) return;
    const down = by === column ? -1 : 1;
    by = by === column ? null : column;
    sorted = [...rows].sort((a, b) => {
      const [x, y] = [key(a), key(b)];
      return (typeof x === "string" ? x.localeCompare(String(y)) : Number(y) - x) * down;
    });
    heads.forEach((head, i) => head.setAttribute("aria-sort", columns[i] !== column ? "none" : (typeof key(rows[0]) === "string") === (down === 1) ? "ascending" : "descending"));
    fill();
  };
  const heads = columns.map((column) =>
    h("th", { scope: "col" }, column.key ? h("button", { type: "button", onclick: () => sort(column) }, column.title) : column.title),
  );
  fill();
  return h(
    "div",
    { class: "table", tabindex: 0, role: "region", "aria-label": caption },
    h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, ...heads)), body),
    more,
  );
}

const KEYS: (keyof Times)[] = ["running", "waiting", "idle", "sleep", "off_lock", "gc"];

export function threadTable(trace: Trace, timeline: Timeline): HTMLElement {
  const share = (key: keyof Times): Column<ThreadSummary> => ({
    title: key.replace("_", "-"),
    cell: ({ times, lifetime }) => percent(lifetime > 0 ? times[key] / lifetime : 0),
    key: ({ times, lifetime }) => (lifetime > 0 ? times[key] / lifetime : 0),
  });
  const time = (title: string, of: (row: ThreadSummary) => number): Column<ThreadSummary> => ({
    title,
    cell: (row) => duration(of(row)),
    key: of,
  });
  const jump = (row: ThreadSummary) => {
    timeline.element.scrollIntoView({ block: "center" });
    timeline.selectAt(trace.summary.threads.indexOf(row), row.longest_hold_at);
  };
  return table("Threads: share of their time in each state", [
    { title: "thread", cell: ({ name }) => h("bdi", {}, clean(name)), key: ({ name }) => name, title_cell: true },
    time("life", ({ lifetime }) => lifetime),
    { title: "", cell: bar },
    ...KEYS.map(share),
    { title: "acquired", cell: ({ acquisitions }) => count(acquisitions), key: ({ acquisitions }) => acquisitions },
    { title: "released", cell: ({ releases }) => count(releases), key: ({ releases }) => releases },
    time("wait p50", ({ waits }) => waits.p50),
    time("p99", ({ waits }) => waits.p99),
    time("max", ({ waits }) => waits.max),
    {
      title: "longest hold",
      cell: (row) => h("button", { type: "button", class: "link", title: "Show it in the timeline", onclick: () => jump(row) }, duration(row.longest_hold)),
      key: ({ longest_hold }) => longest_hold,
    },
  ], trace.summary.threads);
}

function bar({ times, lifetime }: ThreadSummary): HTMLElement {
  const order = [0, 5, 4, 1, 3, 2];
  const parts = order.map((state) => {
    const part = h("span", { class: STATES[state] });
    part.style.width = `${lifetime > 0 ? (times[KEYS[state]] / lifetime) * 100 : 0}%`;
    return part;
  });
  return h("span", { class: "bar", "aria-hidden": "true" }, ...parts);
}

export function spanTable(caption: string, rows: SpanSummary[]): HTMLElement {
  const share = (title: string, of: (times: Times) => number): Column<SpanSummary> => ({
    title,
    cell: ({ times, total }) => percent(total > 0 ? of(times) / total : 0),
    key: ({ times, total }) => (total > 0 ? of(times) / total : 0),
  });
  return table(caption, [
    { title: "name", cell: ({ name }) => h("bdi", {}, clean(name)), key: ({ name }) => name, title_cell: true },
    { title: "count", cell: (row) => count(row.count), key: (row) => row.count },
    { title: "time", cell: ({ total }) => duration(total), key: ({ total }) => total },
    share("running", ({ running, gc }) => running + gc),
    share("waiting", ({ waiting }) => waiting),
    share("off-lock", ({ off_lock }) => off_lock),
    { title: "bytes", cell: ({ bytes }) => (bytes > 0 ? size(bytes) : ""), key: ({ bytes }) => bytes },
  ], rows);
}

const MOST_WAITERS = 24;
const MOST_HOLDERS = 8;

/** Of the time that the thread of a row waited: the share in which the thread of a column held the lock. */
export function blameMatrix(trace: Trace, lock: LockSummary): HTMLElement {
  const holders = lock.holders.slice(0, MOST_HOLDERS).map(([thread]) => thread);
  const name = (thread: number) => h("bdi", {}, clean(trace.threads[thread].name));
  const cell = (time: number, waited: number) => {
    const share = waited > 0 ? time / waited : 0;
    const td = h("td", { class: "heat", title: duration(time) }, share >= 0.0005 ? percent(share) : "");
    td.style.setProperty("--share", share.toFixed(3));
    return td;
  };
  const rows = lock.blame.slice(0, MOST_WAITERS).map((row) => {
    const by = new Map(row.by);
    const others = row.by_others + row.by.filter(([thread]) => !holders.includes(thread)).reduce((sum, [, time]) => sum + time, 0);
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, name(row.thread)),
      h("td", {}, duration(row.waited)),
      ...holders.map((holder) => cell(by.get(holder) ?? 0, row.waited)),
      cell(others, row.waited),
      cell(row.by_no_thread, row.waited),
    );
  });
  const head = (title: string) => h("th", { scope: "col" }, title);
  const holderHead = (thread: number) => h("th", { scope: "col", class: "holder" }, h("span", {}, name(thread)));
  const cut = lock.blame.length > MOST_WAITERS ? h("p", { class: "muted" }, `The ${MOST_WAITERS} threads of ${count(lock.blame.length)} that waited longest.`) : null;
  return h(
    "div",
    { class: "table", tabindex: 0, role: "region", "aria-label": "Blame" },
    h(
      "table",
      { class: "blame" },
      h("caption", {}, "Rows: threads that waited. Columns: threads that held the lock meanwhile"),
      h("thead", {}, h("tr", {}, h("td"), head("waited"), ...holders.map(holderHead), head("others"), head("no thread (being handed over)"))),
      h("tbody", {}, ...rows),
    ),
    cut,
  );
}

const MOST_STATES = 300;

/** The states of one thread in the part of the timeline that is shown, as a table. */
export function stateTable(trace: Trace, timeline: Timeline): HTMLElement {
  const place = h("div");
  const options = trace.threads.map(({ name }, i) => h("option", { value: i }, clean(name)));
  const choice = h("select", { id: "thread-choice", onchange: () => fill() }, ...options);
  const fill = () => {
    const { slices } = trace.threads[Number(choice.value)] ?? trace.threads[0];
    const first = Math.max(0, sliceAt(slices, Math.max(timeline.view.from, slices.starts[0])));
    const last = upperBound(slices.starts, timeline.view.to, slices.count);
    const rows = Array.from({ length: Math.min(last - first, MOST_STATES) }, (_, i) => first + i);
    const span = (i: number) => slices.starts[i + 1] - slices.starts[i];
    place.replaceChildren(
      table<number>(`${last - first > MOST_STATES ? `The first ${MOST_STATES} of ` : ""}${count(last - first)} states between ${duration(timeline.view.from)} and ${duration(timeline.view.to)}`, [
        { title: "from", cell: (i) => moment(slices.starts[i], span(i)), title_cell: true },
        { title: "state", cell: (i) => h("span", {}, swatch(slices.states[i]), ` ${STATES[slices.states[i]]}`) },
        { title: "for", cell: (i) => duration(span(i)), key: span },
        { title: "lock held meanwhile by", cell: (i) => factsAbout(trace, { thread: Number(choice.value), slice: i }).others.slice(0, 3).map(([other]) => clean(trace.threads[other].name)).join(", ") },
      ], rows),
    );
  };
  const box = h("details", { class: "states" }, h("summary", {}, "The timeline as a table"), h("label", { for: "thread-choice" }, "Thread "), choice, place);
  box.addEventListener("toggle", () => box.open && fill());
  let pending = 0;
  timeline.onview = () => {
    if (!box.open) return;
    clearTimeout(pending);
    pending = window.setTimeout(fill, 250);
  };
  return box;
}
