// The same data as the pictures, in tables.
import { h, label } from "./dom";
import { clean, count, duration, moment, percent, size } from "./format";
import { swatch } from "./swatch";
import { type Column, table } from "./table";
import { factsAbout } from "./timeline/facts";
import type { Timeline } from "./timeline/timeline";
import { type Group, type SpanSummary, sliceAt, STATES, type ThreadSummary, type Times, type Trace, upperBound, type WaitTimes } from "./trace";
import { holdersOf, lockOf, longestWaits, marksBetween, type Wait } from "./waits";
import { isHeld } from "./words";

const KEYS: (keyof Times)[] = ["running", "waiting", "idle", "sleep", "off_lock", "gc"];

/** A group, or a thread of one, as a row. */
interface Row {
  name: string;
  threads: number;
  times: Times;
  lifetime: number;
  contended: WaitTimes;
  lost: number;
  acquired: number;
  released: number;
  hold: { thread: number; time: number; at: number };
  members: Row[];
}

function threadRow(thread: number, { name, times, lifetime, contended, acquisitions, releases, longest_hold, longest_hold_at }: ThreadSummary): Row {
  const active = contended.total + times.running + times.gc + times.off_lock;
  const hold = { thread, time: longest_hold, at: longest_hold_at };
  return { name, threads: 1, times, lifetime, contended, lost: active > 0 ? contended.total / active : 0, acquired: acquisitions, released: releases, hold, members: [] };
}

function groupRow(trace: Trace, { name, threads, summary }: Group): Row {
  const members = threads.map((thread) => threadRow(thread, trace.summary.threads[thread]));
  if (members.length === 1) return members[0];
  const sum = (of: (row: Row) => number) => members.reduce((all, row) => all + of(row), 0);
  const hold = members.map((row) => row.hold).reduce((a, b) => (b.time > a.time ? b : a));
  const { times, contended, lost } = summary;
  return { name, threads: threads.length, times, lifetime: sum((row) => row.lifetime), contended, lost, acquired: sum((row) => row.acquired), released: sum((row) => row.released), hold, members };
}

export function groupTable(trace: Trace, timeline: Timeline): HTMLElement {
  const share = (key: keyof Times): Column<Row> => ({
    title: key.replace("_", "-"),
    cell: ({ times, lifetime }) => percent(lifetime > 0 ? times[key] / lifetime : 0),
    key: ({ times, lifetime }) => (lifetime > 0 ? times[key] / lifetime : 0),
  });
  const wait = (title: string, of: (waits: WaitTimes) => number): Column<Row> => ({
    title,
    cell: ({ contended }) => (contended.count > 0 ? duration(of(contended)) : "–"),
    key: ({ contended }) => of(contended),
  });
  const number = (title: string, of: (row: Row) => number): Column<Row> => ({ title, cell: (row) => count(of(row)), key: of });
  const rows = trace.groups.map((group) => groupRow(trace, group));
  return table<Row>(
    "Share of their time in each state; the share of their active time that they lost in contended waits; how long these were. A pool opens to its threads",
    [
      { title: "threads", cell: ({ name, threads }) => h("span", {}, label(name), threads > 1 ? h("span", { class: "muted" }, ` ×${count(threads)}`) : null), key: ({ name }) => name, heads: true },
      { title: "", cell: bar },
      ...KEYS.map(share),
      { title: "lost", cell: ({ lost }) => percent(lost), key: ({ lost }) => lost },
      number("waits", ({ contended }) => contended.count),
      wait("p50", ({ p50 }) => p50),
      wait("p99", ({ p99 }) => p99),
      wait("max", ({ max }) => max),
      {
        title: "longest hold",
        cell: ({ hold }) => (hold.time > 0 ? link(duration(hold.time), () => timeline.selectAt(trace, hold.thread, hold.at + trace.offset)) : "–"),
        key: ({ hold }) => hold.time,
      },
      number("acquired", ({ acquired }) => acquired),
      number("released", ({ released }) => released),
    ],
    rows,
    { children: ({ members }) => members },
  );
}

function link(text: string, onclick: () => void): HTMLElement {
  return h("button", { type: "button", class: "link", title: "Show it in the timeline", onclick }, text);
}

function bar({ times, lifetime }: Row): HTMLElement {
  const order = [0, 5, 4, 1, 3, 2];
  const parts = order.map((state) => {
    const part = h("span", { class: STATES[state] });
    part.style.width = `${lifetime > 0 ? (times[KEYS[state]] / lifetime) * 100 : 0}%`;
    return part;
  });
  return h("span", { class: "bar", "aria-hidden": "true" }, ...parts);
}

const MOST_WAITS = 20;
const MOST_HOLDERS = 2;

/** The longest contended waits of all recordings. */
export function waitTable(traces: Trace[], timeline: Timeline): HTMLElement {
  const waits = longestWaits(traces, MOST_WAITS);
  if (waits.length === 0) return h("p", { class: "muted" }, "No thread waited for the lock while another one held it.");
  const length = ({ start, end }: Wait) => end - start;
  const show = ({ trace, thread, slice, start, end }: Wait) => {
    timeline.selectAt(trace, thread, trace.threads[thread].slices.starts[slice]);
    const around = Math.max(end - start, 1) * 0.6;
    timeline.view.show(start - around, end + around);
  };
  const marks = ({ trace, thread, start, end }: Wait) => marksBetween(trace, thread, start, end).map(({ name }) => name);
  const columns: (Column<Wait> | null)[] = [
    { title: "waited", cell: (wait) => link(duration(length(wait)), () => show(wait)), key: length, heads: true },
    { title: "thread", prose: true, cell: ({ trace, thread }) => label(trace.threads[thread].name), key: ({ trace, thread }) => trace.threads[thread].name },
    traces.length > 1 ? { title: "recording", prose: true, cell: ({ trace }) => label(trace.title), key: ({ trace }) => trace.title } : null,
    waits.some((wait) => marks(wait).length > 0) ? { title: "in", prose: true, cell: (wait) => label(marks(wait).slice(0, 2).join(", ")) } : null,
    { title: "at", cell: ({ start, end }) => moment(start, end - start), key: ({ start }) => -start },
    { title: "the lock was held by", prose: true, cell: holders },
  ];
  return table(`The ${count(waits.length)} longest contended waits`, columns.filter((column) => column !== null), waits);
}

function holders(wait: Wait): HTMLElement {
  const shares = holdersOf(wait);
  const said = shares.slice(0, MOST_HOLDERS).flatMap(([thread, time], i) => [i > 0 ? ", " : "", label(wait.trace.threads[thread].name), ` ${percent(time / (wait.end - wait.start))}`]);
  const more = shares.length > MOST_HOLDERS ? ` and ${shares.length - MOST_HOLDERS} more` : "";
  return h("span", {}, ...(shares.length > 0 ? said : [heldByUnknown(wait)]), more);
}

/** What is said where no thread is known to have held the lock. */
function heldByUnknown(wait: Wait): string {
  const lock = lockOf(wait);
  return lock && !isHeld(lock.summary) ? `unknown: ${clean(lock.name)}` : "no thread: it had no processor";
}

export function spanTable(caption: string, rows: SpanSummary[]): HTMLElement {
  return table(caption, spanColumns(rows), rows);
}

/** What threads did during operations or marks. */
export function spanColumns<T extends SpanSummary>(rows: T[]): Column<T>[] {
  const share = (title: string, of: (times: Times) => number): Column<T> => ({
    title,
    cell: ({ times, total }) => percent(total > 0 ? of(times) / total : 0),
    key: ({ times, total }) => (total > 0 ? of(times) / total : 0),
  });
  const bytes: Column<T> = { title: "bytes", cell: ({ bytes }) => (bytes > 0 ? size(bytes) : ""), key: ({ bytes }) => bytes };
  return [
    { title: "name", cell: ({ name }) => label(name, 60), key: ({ name }) => name, heads: true },
    { title: "count", cell: (row) => count(row.count), key: (row) => row.count },
    { title: "time", cell: ({ total }) => duration(total), key: ({ total }) => total },
    share("running", ({ running, gc }) => running + gc),
    share("waiting", ({ waiting }) => waiting),
    share("off-lock", ({ off_lock }) => off_lock),
    ...(rows.some(({ bytes }) => bytes > 0) ? [bytes] : []),
  ];
}

const MOST_STATES = 300;

/** The states of one thread in the part of the timeline that is shown, as a table. */
export function stateTable(traces: Trace[], timeline: Timeline): HTMLElement {
  const place = h("div");
  const options = traces.flatMap((trace) => trace.threads.map(({ name }, i) => h("option", { value: `${trace.index}.${i}` }, clean(traces.length > 1 ? `${trace.title}: ${name}` : name))));
  const choice = h("select", { id: "thread-choice", onchange: () => fill() }, ...options);
  const fill = () => {
    const [index, thread] = choice.value.split(".").map(Number);
    const trace = traces[index];
    const { slices } = trace.threads[thread];
    const first = Math.max(0, sliceAt(slices, Math.max(timeline.view.from, slices.starts[0])));
    const last = upperBound(slices.starts, timeline.view.to, slices.count);
    const rows = Array.from({ length: Math.max(0, Math.min(last - first, MOST_STATES)) }, (_, i) => first + i);
    const span = (i: number) => slices.starts[i + 1] - slices.starts[i];
    place.replaceChildren(
      table<number>(`${last - first > MOST_STATES ? `The first ${MOST_STATES} of ` : ""}${count(last - first)} states between ${duration(timeline.view.from)} and ${duration(timeline.view.to)}`, [
        { title: "from", cell: (i) => moment(slices.starts[i], span(i)), heads: true },
        { title: "state", prose: true, cell: (i) => h("span", {}, swatch(slices.states[i]), ` ${STATES[slices.states[i]]}`) },
        { title: "for", cell: (i) => duration(span(i)), key: span },
        { title: "lock held meanwhile by", prose: true, cell: (i) => factsAbout({ trace, thread, slice: i }).others.slice(0, 3).map(([other]) => clean(trace.threads[other].name)).join(", ") },
      ], rows),
    );
  };
  const box = h("details", { class: "states" }, h("summary", {}, "The timeline as a table"), h("label", { for: "thread-choice" }, "Thread "), choice, place);
  box.addEventListener("toggle", () => box.open && fill());
  let pending = 0;
  timeline.listen({
    view: () => {
      if (!box.open) return;
      clearTimeout(pending);
      pending = window.setTimeout(fill, 250);
    },
  });
  return box;
}
