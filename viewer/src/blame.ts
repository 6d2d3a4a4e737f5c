// Which groups held the lock while others waited. For each hold of the lock the time that the threads of a group waited
// meanwhile is the growth of the area below the number of them that wait: one pass over the holds and the waits.
import { h, label } from "./dom";
import { count, duration, percent } from "./format";
import { type Edges, waitEdges } from "./series";
import type { Lock, Trace } from "./trace";

const MOST_WAITERS = 24;
const MOST_HOLDERS = 8;

interface Waiter {
  name: string;
  threads: number[];
  waited: number;
  /** How long each group held the lock meanwhile. */
  by: Float64Array;
  inner: boolean;
}

/** The area below the number of intervals under way, up to moments that never go back. */
function rising({ starts, ends, startSums, endSums }: Edges): (time: number) => number {
  let i = 0;
  let j = 0;
  return (time) => {
    while (starts[i] <= time) i++;
    while (ends[j] <= time) j++;
    return (i - j) * time - (startSums[i] - endSums[j]);
  };
}

function waiter(trace: Trace, lock: Lock, name: string, threads: number[], inner: boolean): Waiter {
  const edges = waitEdges(threads.map((thread) => trace.threads[thread]), lock.id);
  const area = rising(edges);
  const by = new Float64Array(trace.groups.length);
  const { starts, ends, threads: holders } = lock.holds;
  for (let i = 0; i < starts.length; i++) {
    const before = area(starts[i]);
    by[trace.threads[holders[i]].group] += area(ends[i]) - before;
  }
  const waited = edges.endSums[edges.ends.length] - edges.startSums[edges.starts.length];
  return { name, threads, waited, by, inner };
}

/** Rows: the groups that waited longest, a pool opens to its threads. Columns: the groups behind which they waited longest. */
export function blameMatrix(trace: Trace, lock: Lock): HTMLElement {
  const all = trace.groups.map(({ name, threads }) => waiter(trace, lock, name, threads, false)).filter(({ waited }) => waited > 0);
  const waiters = all.sort((a, b) => b.waited - a.waited).slice(0, MOST_WAITERS);
  const inflicted = trace.groups.map((_, group) => all.reduce((sum, { by }) => sum + by[group], 0));
  const holders = trace.groups.map(({ index }) => index).filter((group) => inflicted[group] > 0);
  holders.sort((a, b) => inflicted[b] - inflicted[a]).splice(MOST_HOLDERS);
  const open = new Map<Waiter, Waiter[]>();
  const body = h("tbody");
  const toggle = (row: Waiter) => {
    if (!open.delete(row)) open.set(row, members(trace, lock, row));
    fill();
  };
  const fill = () => {
    const focused = [...body.querySelectorAll(".opener")].indexOf(document.activeElement as Element);
    body.replaceChildren(...waiters.flatMap((row) => [row, ...(open.get(row) ?? [])]).map((row) => line(row, holders, open.has(row), toggle)));
    if (focused >= 0) (body.querySelectorAll(".opener")[focused] as HTMLElement).focus();
  };
  fill();
  const head = (title: string) => h("th", { scope: "col" }, title);
  const holderHead = (group: number) => h("th", { scope: "col", class: "holder" }, label(trace.groups[group].name, 22));
  const hides = all.length > MOST_WAITERS ? h("p", { class: "muted" }, `The ${MOST_WAITERS} of ${count(all.length)} that waited longest.`) : null;
  return h(
    "div",
    { class: "table", tabindex: 0, role: "region", "aria-label": "Blame" },
    h(
      "table",
      { class: "blame" },
      h("caption", {}, "Rows: threads that waited. Columns: the share of that time for which others held the lock"),
      h("thead", {}, h("tr", {}, h("td"), head("waited"), ...holders.map(holderHead), head("others"), head("no thread (being handed over)"))),
      body,
    ),
    hides,
  );
}

const MOST_MEMBERS = 100;

function members(trace: Trace, lock: Lock, { threads }: Waiter): Waiter[] {
  const all = threads.map((thread) => waiter(trace, lock, trace.threads[thread].name, [thread], true));
  return all.filter(({ waited }) => waited > 0).sort((a, b) => b.waited - a.waited).slice(0, MOST_MEMBERS);
}

function line(row: Waiter, holders: number[], open: boolean, toggle: (row: Waiter) => void): HTMLElement {
  const { name, threads, waited, by, inner } = row;
  const cell = (time: number) => {
    const share = waited > 0 ? Math.max(time, 0) / waited : 0;
    const td = h("td", { class: "heat", title: duration(Math.max(time, 0)) }, share >= 0.0005 ? percent(share) : "");
    td.style.setProperty("--share", share.toFixed(3));
    return td;
  };
  const held = by.reduce((a, b) => a + b, 0);
  const others = held - holders.reduce((sum, group) => sum + by[group], 0);
  const opener = threads.length > 1 ? h("button", { type: "button", class: "opener", "aria-expanded": open, "aria-label": "Threads", onclick: () => toggle(row) }, open ? "▾" : "▸") : null;
  const times = threads.length > 1 ? h("span", { class: "muted" }, ` ×${count(threads.length)}`) : null;
  return h(
    "tr",
    inner ? { class: "inner" } : {},
    h("th", { scope: "row" }, opener, label(name), times),
    h("td", {}, duration(waited)),
    ...holders.map((group) => cell(by[group])),
    cell(others),
    cell(waited - held),
  );
}
