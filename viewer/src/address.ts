// The part of the timeline that is shown and what is selected, in the fragment of the page's address: a copied link shows
// the same, and the browser's buttons go back and forth.
import { type Span, sliceAt, type Trace } from "./trace";
import type { Selection } from "./timeline/facts";
import type { Range } from "./timeline/scene";
import type { State, Timeline } from "./timeline/timeline";

/** A change is entered into the history when none has followed for so long, in milliseconds. */
const SETTLED = 350;

export function keepAddress(traces: Trace[], timeline: Timeline): void {
  const first = timeline.state;
  let own: string | null = null;
  const restore = () => {
    // The event for what was written here comes late, when the state may have changed again.
    if (fragment() === own) own = null;
    else if (fragment() !== written(timeline.state, first)) timeline.state = read(fragment(), traces, first);
  };
  let pending = 0;
  const changed = () => {
    clearTimeout(pending);
    pending = window.setTimeout(() => {
      const text = written(timeline.state, first);
      if (text !== fragment()) location.hash = own = text;
    }, SETTLED);
  };
  addEventListener("hashchange", restore);
  restore();
  timeline.listen({ select: changed, range: changed, view: changed });
}

function fragment(): string {
  return location.hash.slice(1);
}

const stretch = ({ from, to }: Range) => `${Math.round(from)}-${Math.round(to)}`;

/** What differs from the first state. */
function written({ from, to, selection, range, toggled, text, order }: State, first: State): string {
  const parts: [string, string][] = [];
  if (from !== first.from || to !== first.to) parts.push(["view", stretch({ from, to })]);
  if (selection) parts.push(["select", nameOf(selection)]);
  if (range) parts.push(["range", stretch(range)]);
  if (toggled.length > 0) parts.push(["toggled", toggled.sort().join("_")]);
  if (text) parts.push(["find", encodeURIComponent(text)]);
  if (order !== first.order) parts.push(["order", order]);
  return parts.map((part) => part.join("=")).join("&");
}

/** Recording, thread and beginning; of a mark its lane, too. */
function nameOf({ trace, thread, slice, mark }: Selection): string {
  const { marks, slices } = trace.threads[thread];
  const parts = [trace.index, thread, mark ? mark.start : slices.starts[slice]];
  if (mark) parts.push(marks.findIndex((lane) => lane.includes(mark)));
  return parts.join(".");
}

/** What cannot be understood is left as it was at first. */
function read(text: string, traces: Trace[], first: State): State {
  const parts = new Map(text.split("&").map((part) => part.split("=", 2) as [string, string]));
  const view = stretchIn(parts.get("view")) ?? first;
  return {
    ...first,
    from: view.from,
    to: view.to,
    selection: selectionIn(parts.get("select"), traces),
    range: stretchIn(parts.get("range")),
    toggled: parts.get("toggled")?.split("_") ?? [],
    text: decoded(parts.get("find") ?? ""),
    order: (parts.get("order") ?? first.order) as State["order"],
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

function stretchIn(text = ""): Range | null {
  const [, from, to] = /^(\d+)-(\d+)$/.exec(text)?.map(Number) ?? [];
  return from < to ? { from, to } : null;
}

function selectionIn(text = "", traces: Trace[]): Selection | null {
  const [index, thread, start, lane] = text.split(".").map(Number);
  const found = traces[index]?.threads[thread];
  if (!found) return null;
  const trace = traces[index];
  const slice = sliceAt(found.slices, start);
  const mark: Span | undefined = found.marks[lane]?.find((each) => each.start === start);
  if (mark) return { trace, thread, slice: Math.max(slice, 0), mark };
  return slice < 0 ? null : { trace, thread, slice };
}
