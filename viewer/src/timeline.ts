// The timeline of all threads: an overview, two charts of the lock and a row for each thread.
import { clean, count, duration, moment, percent } from "./format";
import { h } from "./dom";
import { type Band, type Palette, paintStates, type Pixels, type Range, shiftColumns } from "./raster";
import { type Edges, holdEdges, meanCounts, waitEdges } from "./series";
import { onThemeChange, pixel, type Theme, theme } from "./theme";
import {
  holdersDuring,
  type Lock,
  OFF_LOCK,
  type Share,
  sliceAt,
  type Span,
  STATES,
  type Trace,
  upperBound,
  WAITING,
  waitersDuring,
} from "./trace";

const GUTTER = 168;
const ROW = 24;
const BAR = 17;
const OVERVIEW = 44;
const AXIS = 22;
const CHART = 46;
const MARK = 3;
const MOST_ROWS_SHOWN = 28;
const SHORTEST_VIEW = 50;
const FONT = "12px system-ui, sans-serif";
const SMALL = "11px system-ui, sans-serif";

/** A state of a thread: the thread's index and the slice's. */
export interface Selection {
  thread: number;
  slice: number;
}

/** What there is to say about a slice. */
export interface Facts {
  thread: number;
  name: string;
  state: number;
  start: number;
  end: number;
  what: string;
  lock: Lock | undefined;
  marks: Span[];
  /** Who held the lock while this thread waited, or who waited while it held the lock. */
  others: Share[];
}

interface LockEdges {
  lock: Lock;
  holds: Edges;
  waits: Edges;
}

export type Order = "appearance" | "waiting" | "running" | "name";

export class Timeline {
  readonly element: HTMLElement;
  onselect: (facts: Facts | null) => void = () => {};
  onview: () => void = () => {};
  from = 0;
  to: number;

  private readonly overview = h("canvas", { class: "overview", "aria-hidden": "true" });
  private readonly head = h("canvas", { class: "head", "aria-hidden": "true" });
  private readonly rows = h("canvas", {
    class: "rows",
    tabindex: 0,
    role: "application",
    "aria-roledescription": "timeline",
  });
  private readonly spacer = h("div");
  private readonly scroller = h("div", { class: "scroller" }, this.rows, this.spacer);
  private readonly tooltip = h("div", { class: "tooltip", hidden: true });
  private readonly matches = h("span", { class: "matches", role: "status" });
  private readonly search = h("input", {
    type: "search",
    placeholder: "Find a thread, operation or mark",
    "aria-label": "Find a thread, operation or mark",
    oninput: () => this.arrange(),
  });

  private theme: Theme = theme();
  private order: Order = "appearance";
  private shown: number[] = [];
  private selection: Selection | null = null;
  private pointer: { x: number; y: number; head: boolean } | null = null;
  private lockEdges: LockEdges | null = null;
  private frame = 0;
  private painted: Painted | null = null;
  private readonly charted = new Remembered<[Float64Array, Float64Array]>();
  private readonly overviewed = new Remembered<[Float64Array, Float64Array]>();
  private readonly length: number;

  constructor(private readonly trace: Trace) {
    this.length = Math.max(trace.summary.length, 1);
    this.to = this.length;
    this.rows.setAttribute("aria-label", this.label());
    this.element = h(
      "div",
      { class: "timeline" },
      this.toolbar(),
      h("div", { class: "canvases" }, this.overview, this.head, this.scroller, this.tooltip),
      this.hints(),
    );
    this.listen();
    this.arrange();
  }

  private label(): string {
    const { threads, summary } = this.trace;
    return `Timeline of ${threads.length} threads over ${duration(summary.length)}. Up and down choose a thread, left and right a state, Enter goes to whoever held the lock. The tables below say the same in text.`;
  }

  // Tools

  private toolbar(): HTMLElement {
    const button = (text: string, label: string, act: () => void) =>
      h("button", { type: "button", title: label, "aria-label": label, onclick: act }, text);
    const orders: [Order, string][] = [
      ["appearance", "in order of appearance"],
      ["waiting", "longest waiting first"],
      ["running", "longest running first"],
      ["name", "by name"],
    ];
    const order = h(
      "select",
      {
        "aria-label": "Order of threads",
        onchange: (event: Event) => {
          this.order = (event.target as HTMLSelectElement).value as Order;
          this.arrange();
        },
      },
      ...orders.map(([value, text]) => h("option", { value }, text)),
    );
    return h(
      "div",
      { class: "toolbar" },
      this.search,
      order,
      ...this.lockChoice(),
      this.matches,
      h(
        "span",
        { class: "buttons" },
        button("−", "Zoom out (-)", () => this.zoom(2)),
        button("+", "Zoom in (+)", () => this.zoom(0.5)),
        button("All", "Show everything (0)", () => this.show(0, this.length)),
      ),
    );
  }

  private lockChoice(): HTMLElement[] {
    const { locks } = this.trace;
    if (locks.length < 2) return [];
    const options = locks.map((lock, i) => h("option", { value: i }, clean(lock.name)));
    const choose = (event: Event) => this.watch(locks[Number((event.target as HTMLSelectElement).value)]);
    return [h("select", { "aria-label": "Lock shown in the charts", onchange: choose }, ...options)];
  }

  private hints(): HTMLElement {
    const key = (name: string) => h("kbd", {}, name);
    return h(
      "p",
      { class: "hints" },
      "Drag to pan, ", key("Ctrl"), " + wheel or ", key("+"), " ", key("−"), " to zoom, click a state for details. ",
      "Keys: ", key("↑"), key("↓"), " thread, ", key("←"), key("→"), " state, ", key("Enter"), " who is to blame, ",
      key("f"), " zoom to it, ", key("a"), key("d"), " pan, ", key("0"), " everything, ", key("/"), " find.",
    );
  }

  // What is shown

  /** Applies search and order. */
  private arrange(): void {
    const { threads } = this.trace;
    const wanted = this.search.value.trim().toLowerCase();
    const has = (text: string) => text.toLowerCase().includes(wanted);
    const fits = (thread: number) => {
      const { name, marks, regions } = threads[thread];
      return !wanted || has(name) || marks.some((mark) => has(mark.name)) || regions.some((region) => has(region.name));
    };
    const key = {
      appearance: () => 0,
      waiting: (thread: number) => -threads[thread].summary.times.waiting,
      running: (thread: number) => -threads[thread].summary.times.running,
      name: () => 0,
    }[this.order];
    this.shown = threads.map((_, thread) => thread).filter(fits);
    this.shown.sort((a, b) => key(a) - key(b) || (this.order === "name" ? threads[a].name.localeCompare(threads[b].name) : a - b));
    this.matches.textContent = wanted ? `${count(this.shown.length)} of ${count(threads.length)} threads` : "";
    const rows = Math.max(1, this.shown.length);
    this.scroller.style.height = `${Math.min(rows, MOST_ROWS_SHOWN) * ROW + 2}px`;
    this.spacer.style.height = `${Math.max(0, rows - Math.min(rows, MOST_ROWS_SHOWN)) * ROW}px`;
    this.redraw();
  }

  /** Draws the charts for a lock. */
  watch(lock: Lock | undefined): void {
    this.lockEdges = lock ? { lock, holds: holdEdges(lock.holds), waits: waitEdges(this.trace.threads, lock.id) } : null;
    this.redraw();
  }

  /** Shows the time between two moments. */
  show(from: number, to: number): void {
    const span = Math.min(Math.max(to - from, SHORTEST_VIEW), this.length);
    this.from = Math.min(Math.max(from + (to - from - span) / 2, 0), this.length - span);
    this.to = this.from + span;
    this.redraw();
    this.onview();
  }

  private zoom(factor: number, at = (this.from + this.to) / 2): void {
    const from = at - (at - this.from) * factor;
    this.show(from, from + (this.to - this.from) * factor);
  }

  /** By whole pixels, so that most of what is painted can stay. */
  private pan(by: number): void {
    const ratio = Math.min(devicePixelRatio || 1, 3);
    const pixel = (this.to - this.from) / (Math.round(this.width() * ratio) - Math.round(GUTTER * ratio));
    const whole = Math.round(by / pixel) * pixel;
    this.show(this.from + whole, this.to + whole);
  }

  /** Selects a slice, brings it into view and tells about it. */
  select(selection: Selection | null, reveal = true): void {
    this.selection = selection;
    if (selection && reveal) this.reveal(selection);
    this.onselect(selection ? this.facts(selection) : null);
    this.redraw();
  }

  private reveal({ thread, slice }: Selection): void {
    if (!this.shown.includes(thread)) {
      this.search.value = "";
      this.arrange();
    }
    const row = this.shown.indexOf(thread);
    const { scrollTop, clientHeight } = this.scroller;
    if (row * ROW < scrollTop || (row + 1) * ROW > scrollTop + clientHeight) {
      this.scroller.scrollTop = row * ROW - clientHeight / 2;
    }
    const { starts } = this.trace.threads[thread].slices;
    const [start, end] = [starts[slice], starts[slice + 1]];
    const span = this.to - this.from;
    if (end - start > span) this.show(start - (end - start) * 0.1, end + (end - start) * 0.1);
    else if (start < this.from || end > this.to) this.show((start + end - span) / 2, (start + end + span) / 2);
    else if ((end - start) / span < 0.002) this.show(start - (end - start) * 20, end + (end - start) * 20);
  }

  /** Selects what a thread does at a moment. */
  selectAt(thread: number, time: number): void {
    const slice = sliceAt(this.trace.threads[thread].slices, time);
    if (slice >= 0) this.select({ thread, slice });
  }

  facts({ thread, slice }: Selection): Facts {
    const { name, slices, marks } = this.trace.threads[thread];
    const [start, end, state] = [slices.starts[slice], slices.starts[slice + 1], slices.states[slice]];
    const holds = STATES[state] === "running" || STATES[state] === "gc";
    const lock = holds || state === WAITING ? this.trace.locks.find(({ id }) => id === slices.whats[slice]) : undefined;
    const operation = state === OFF_LOCK ? this.trace.names.get(slices.whats[slice]) : undefined;
    let others: Share[] = [];
    if (lock) others = state === WAITING ? holdersDuring(lock.holds, start, end) : waitersDuring(this.trace.threads, lock.id, start, end);
    return {
      thread, name, state, start, end, lock, others,
      what: operation ?? lock?.name ?? "",
      marks: marks.filter((mark) => mark.start < end && mark.end > start).slice(0, 8),
    };
  }

  // Input

  private listen(): void {
    new ResizeObserver(() => this.redraw()).observe(this.scroller);
    onThemeChange(() => {
      this.theme = theme();
      this.redraw();
    });
    this.scroller.addEventListener("scroll", () => this.redraw());
    this.rows.addEventListener("keydown", (event) => this.key(event));
    this.drag(this.rows, false);
    this.drag(this.head, true);
    this.brush();
    for (const canvas of [this.rows, this.head]) {
      canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
      canvas.addEventListener("dblclick", (event) => this.zoom(0.25, this.timeAt(event.offsetX)));
      canvas.addEventListener("pointerleave", () => this.hover(null));
    }
  }

  private drag(canvas: HTMLCanvasElement, head: boolean): void {
    let last: number | null = null;
    let moved = 0;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      [last, moved] = [event.clientX, 0];
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      this.hover({ x: event.offsetX, y: event.offsetY, head });
      if (last === null) return;
      const by = event.clientX - last;
      moved += Math.abs(by);
      if (moved > 3) {
        this.pan(-by / this.scale());
        last = event.clientX;
        moved += 4;
      }
    });
    const release = (event: PointerEvent) => {
      if (last !== null && moved <= 3 && !head) this.click(event);
      last = null;
    };
    canvas.addEventListener("pointerup", release);
    canvas.addEventListener("pointercancel", () => (last = null));
  }

  private brush(): void {
    let start: number | null = null;
    const timeAt = (event: PointerEvent) => {
      const width = this.overview.clientWidth - GUTTER;
      return (Math.min(Math.max(event.offsetX - GUTTER, 0), width) / width) * this.length;
    };
    this.overview.addEventListener("pointerdown", (event) => {
      start = timeAt(event);
      this.overview.setPointerCapture(event.pointerId);
    });
    this.overview.addEventListener("pointermove", (event) => {
      if (start === null) return;
      const time = timeAt(event);
      if (Math.abs(time - start) * this.overview.clientWidth > this.length * 3) this.show(Math.min(start, time), Math.max(start, time));
    });
    this.overview.addEventListener("pointerup", (event) => {
      const time = timeAt(event);
      const span = this.to - this.from;
      if (start !== null && Math.abs(time - start) * this.overview.clientWidth <= this.length * 3) this.show(time - span / 2, time + span / 2);
      start = null;
    });
  }

  private wheel(event: WheelEvent): void {
    if (event.ctrlKey || event.metaKey) {
      this.zoom(Math.exp(Math.min(Math.max(event.deltaY, -60), 60) * 0.01), this.timeAt(event.offsetX));
    } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) {
      this.pan((event.deltaX || event.deltaY) / this.scale());
    } else {
      return;
    }
    event.preventDefault();
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const span = this.to - this.from;
    const act = {
      ArrowUp: () => this.move(-1, 0),
      ArrowDown: () => this.move(1, 0),
      ArrowLeft: () => this.move(0, -1),
      ArrowRight: () => this.move(0, 1),
      Enter: () => this.follow(),
      Escape: () => this.select(null),
      a: () => this.pan(-span / 5),
      d: () => this.pan(span / 5),
      "+": () => this.zoom(0.5),
      "=": () => this.zoom(0.5),
      w: () => this.zoom(0.5),
      "-": () => this.zoom(2),
      s: () => this.zoom(2),
      "0": () => this.show(0, this.length),
      f: () => this.fit(),
      "/": () => this.search.focus(),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  /** Moves the selection by rows or by slices. */
  private move(rows: number, slices: number): void {
    const { threads } = this.trace;
    if (!this.selection) {
      if (this.shown.length > 0) this.selectAt(this.shown[0], Math.max(this.from, threads[this.shown[0]].slices.starts[0]));
      return;
    }
    const { thread, slice } = this.selection;
    const { starts, count } = threads[thread].slices;
    if (slices !== 0) {
      this.select({ thread, slice: Math.min(Math.max(slice + slices, 0), count - 1) });
      return;
    }
    const next = this.shown[this.shown.indexOf(thread) + rows];
    if (next === undefined) return;
    const theirs = threads[next].slices;
    const time = Math.min(Math.max((starts[slice] + starts[slice + 1]) / 2, theirs.starts[0]), theirs.starts[theirs.count] - 1);
    this.selectAt(next, time);
  }

  /** From a thread that waits to the one that held the lock longest meanwhile. */
  follow(to?: number): void {
    if (!this.selection) return;
    const { state, start, end, lock, others } = this.facts(this.selection);
    const other = to ?? others[0]?.[0];
    if (!lock || other === undefined) return;
    if (state === WAITING) {
      const { starts, ends, threads } = lock.holds;
      for (let i = Math.max(0, upperBound(starts, start) - 1); i < starts.length && starts[i] < end; i++) {
        if (threads[i] === other && ends[i] > start) return this.selectAt(other, Math.max(starts[i], start));
      }
    } else {
      const { starts, states, whats, count } = this.trace.threads[other].slices;
      for (let i = Math.max(0, upperBound(starts, start, count) - 1); i < count && starts[i] < end; i++) {
        if (states[i] === WAITING && whats[i] === lock.id && starts[i + 1] > start) return this.select({ thread: other, slice: i });
      }
    }
  }

  private fit(): void {
    if (!this.selection) return;
    const { starts } = this.trace.threads[this.selection.thread].slices;
    const [start, end] = [starts[this.selection.slice], starts[this.selection.slice + 1]];
    this.show(start - (end - start) * 0.2, end + (end - start) * 0.2);
  }

  private click(event: PointerEvent): void {
    const thread = this.shown[Math.floor((event.offsetY + this.scroller.scrollTop) / ROW)];
    if (thread === undefined) return;
    const slice = event.offsetX < GUTTER ? -1 : this.sliceNear(thread, event.offsetX);
    this.select(slice < 0 ? null : { thread, slice }, false);
  }

  /** The slice under the pointer; where a pixel shows several, one that waits or the longest. */
  private sliceNear(thread: number, x: number): number {
    const { slices } = this.trace.threads[thread];
    const [from, to] = [this.timeAt(x), this.timeAt(x + 1)];
    let best = sliceAt(slices, from);
    const last = sliceAt(slices, Math.min(to, slices.starts[slices.count] - 1));
    const weight = (i: number) => (slices.starts[i + 1] - slices.starts[i]) * (slices.states[i] === WAITING ? 2 : 1);
    for (let i = Math.max(0, best); i <= last && i - best < 1000; i++) if (best < 0 || weight(i) > weight(best)) best = i;
    return best;
  }

  private hover(pointer: { x: number; y: number; head: boolean } | null): void {
    this.pointer = pointer;
    this.redraw();
  }

  // Drawing

  private width(): number {
    return Math.max(this.scroller.clientWidth, GUTTER + 50);
  }

  /** CSS pixels per nanosecond. */
  private scale(): number {
    return (this.width() - GUTTER) / (this.to - this.from);
  }

  private timeAt(x: number): number {
    return this.from + (x - GUTTER) / this.scale();
  }

  private xOf(time: number): number {
    return GUTTER + (time - this.from) * this.scale();
  }

  redraw(): void {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  /** Draws at once: for printing, which does not wait for a frame. */
  draw(): void {
    this.drawRows();
    this.drawHead();
    this.drawOverview();
    this.drawTooltip();
  }

  /** A context for a canvas of this size in CSS pixels, and the number of real pixels in one of them. */
  private context(canvas: HTMLCanvasElement, height: number): [CanvasRenderingContext2D, number] {
    const ratio = Math.min(devicePixelRatio || 1, 3);
    const [width, tall] = [Math.round(this.width() * ratio), Math.round(height * ratio)];
    if (canvas.width !== width || canvas.height !== tall) {
      [canvas.width, canvas.height] = [width, tall];
      canvas.style.height = `${height}px`;
      canvas.style.width = `${this.width()}px`;
    }
    const context = canvas.getContext("2d", { alpha: true }) as CanvasRenderingContext2D;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = FONT;
    context.textBaseline = "middle";
    return [context, ratio];
  }

  private drawRows(): void {
    const height = this.scroller.clientHeight;
    const [context, ratio] = this.context(this.rows, height);
    const top = this.scroller.scrollTop;
    const first = Math.floor(top / ROW);
    const visible = this.shown.slice(first, Math.ceil((top + height) / ROW));
    const y = (row: number) => (first + row) * ROW - top + (ROW - BAR) / 2;
    const { width: wide, height: tall } = this.rows;
    const key = [top, wide, tall, this.theme.panel, ...visible].join();
    const left = Math.round(GUTTER * ratio);
    const bands = visible.map((_, row) => ({
      left,
      right: wide,
      top: Math.max(0, Math.round(y(row) * ratio)),
      bottom: Math.min(tall, Math.round((y(row) + BAR) * ratio)),
    }));
    if (!this.painted || !this.moved(this.painted, key, left, visible, bands)) {
      const image = context.createImageData(wide, tall);
      this.painted = { key, image, from: this.from, span: this.to - this.from, palette: this.palette(ratio) };
      this.paint(this.painted, visible, bands, this);
    }
    context.putImageData(this.painted.image, 0, 0);
    visible.forEach((thread, row) => {
      this.drawName(context, thread, y(row));
      this.drawMarks(context, thread, y(row));
      this.drawOperations(context, thread, y(row));
    });
    this.drawSelection(context, (thread) => {
      const row = this.shown.indexOf(thread);
      return row < 0 ? null : row * ROW - top + (ROW - BAR) / 2;
    });
    this.drawCrosshair(context, height);
    if (this.shown.length === 0) {
      context.fillStyle = this.theme.muted;
      context.fillText("No thread fits.", GUTTER + 12, ROW / 2);
    }
  }

  private palette(ratio: number): Palette {
    return {
      states: this.theme.states.map(pixel),
      hatch: pixel(this.theme.panel),
      hatchWidth: Math.max(1, Math.round(ratio)),
      hatchShift: 0,
    };
  }

  /** The states of the visible threads, pixel by pixel. */
  private paint({ image, palette }: Painted, visible: number[], bands: Band[], range: Range): void {
    const pixels = pixelsOf(image);
    visible.forEach((thread, row) => {
      const band = bands[row];
      if (band.bottom > band.top && band.right > band.left) paintStates(pixels, band, this.trace.threads[thread].slices, range, palette);
    });
  }

  /** Makes what is painted already into what is to be shown, if that is the same but for a pan by whole pixels. */
  private moved(painted: Painted, key: string, left: number, visible: number[], bands: Band[]): boolean {
    const span = this.to - this.from;
    const columns = painted.image.width - left;
    if (painted.key !== key || Math.abs(painted.span - span) > span * 1e-9) return false;
    const exact = ((this.from - painted.from) / span) * columns;
    const by = Math.round(exact);
    if (Math.abs(exact - by) > 0.02 || Math.abs(by) >= columns) return false;
    if (by === 0) return true;
    shiftColumns(pixelsOf(painted.image), left, by);
    painted.from += (by / columns) * span;
    const { palette } = painted;
    const hatching = 4 * palette.hatchWidth;
    palette.hatchShift = (((palette.hatchShift + by) % hatching) + hatching) % hatching;
    const [first, last] = by > 0 ? [columns - by, columns] : [0, -by];
    const fresh = bands.map((band) => ({ ...band, left: left + first, right: left + last }));
    const time = (column: number) => painted.from + (column / columns) * span;
    const shifted = { ...painted, palette: { ...palette, hatchShift: palette.hatchShift + first } };
    this.paint(shifted, visible, fresh, { from: time(first), to: time(last) });
    return true;
  }

  private drawName(context: CanvasRenderingContext2D, thread: number, y: number): void {
    const selected = this.selection?.thread === thread;
    context.fillStyle = selected ? this.theme.accent : this.theme.text;
    context.font = selected ? `600 ${FONT}` : FONT;
    context.fillText(fitted(context, clean(this.trace.threads[thread].name), GUTTER - 20), 8, y + BAR / 2 + 0.5);
  }

  private drawMarks(context: CanvasRenderingContext2D, thread: number, y: number): void {
    const { marks } = this.trace.threads[thread];
    context.fillStyle = this.theme.mark;
    let drawn = -1;
    for (const { start, end } of marks) {
      if (end < this.from || start > this.to) continue;
      const x = Math.max(this.xOf(start), GUTTER);
      const right = Math.max(this.xOf(end), x + 1);
      if (right - drawn < 0.5) continue;
      context.fillRect(x, y - MARK + 1, right - x, MARK);
      drawn = right;
    }
  }

  private drawOperations(context: CanvasRenderingContext2D, thread: number, y: number): void {
    const { slices } = this.trace.threads[thread];
    context.font = SMALL;
    context.fillStyle = "#ffffff";
    const shortest = 36 / this.scale();
    const first = Math.max(0, upperBound(slices.starts, this.from, slices.count) - 1);
    const last = upperBound(slices.starts, this.to, slices.count);
    if (last - first > 4_000) return;
    for (let i = first; i < last; i++) {
      if (slices.states[i] !== OFF_LOCK || slices.starts[i + 1] - slices.starts[i] < shortest) continue;
      const x = Math.max(this.xOf(slices.starts[i]), GUTTER);
      const width = Math.min(this.xOf(slices.starts[i + 1]), this.width()) - x;
      const name = clean(this.trace.names.get(slices.whats[i]) ?? "");
      if (width > 30) context.fillText(fitted(context, name, width - 8), x + 4, y + BAR / 2 + 0.5);
    }
  }

  private drawSelection(context: CanvasRenderingContext2D, yOf: (thread: number) => number | null): void {
    if (!this.selection) return;
    const { thread, state, start, end, lock } = this.facts(this.selection);
    const y = yOf(thread);
    const outline = (from: number, to: number, at: number) => {
      const x = Math.max(this.xOf(from), GUTTER - 1);
      const right = Math.min(this.xOf(to), this.width() + 1);
      if (right >= x) context.strokeRect(x, at - 1, Math.max(right - x, 1.5), BAR + 2);
    };
    context.strokeStyle = this.theme.text;
    context.lineWidth = 1.5;
    if (y !== null) outline(start, end, y);
    if (state !== WAITING || !lock || y === null) return;
    context.strokeStyle = this.theme.accent;
    context.fillStyle = this.theme.accent;
    const { starts, ends, threads } = lock.holds;
    const first = Math.max(0, upperBound(starts, start) - 1);
    const held = upperBound(starts, end) - first;
    if (held > 400) return;
    for (let i = first; i < first + held; i++) {
      const [from, to] = [Math.max(starts[i], start), Math.min(ends[i], end)];
      const at = yOf(threads[i]);
      if (to <= from || at === null) continue;
      outline(from, to, at);
      const x = (this.xOf(from) + this.xOf(to)) / 2;
      if (held > 12 || x < GUTTER || x > this.width()) continue;
      context.beginPath();
      context.setLineDash([3, 2]);
      context.moveTo(x, at > y ? at - 1 : at + BAR + 1);
      context.lineTo(x, at > y ? y + BAR + 1 : y - 1);
      context.stroke();
      context.setLineDash([]);
    }
  }

  private drawCrosshair(context: CanvasRenderingContext2D, height: number): void {
    if (!this.pointer || this.pointer.x < GUTTER) return;
    context.fillStyle = this.theme.muted;
    context.globalAlpha = 0.5;
    context.fillRect(Math.round(this.pointer.x), 0, 1, height);
    context.globalAlpha = 1;
  }

  private drawHead(): void {
    const height = AXIS + (this.lockEdges ? 2 * CHART : 0);
    const [context, ratio] = this.context(this.head, height);
    context.clearRect(0, 0, this.width(), height);
    this.drawAxis(context);
    if (this.lockEdges) {
      const columns = Math.max(1, Math.round((this.width() - GUTTER) * ratio));
      const { lock, holds, waits } = this.lockEdges;
      const key = [lock.id, this.from, this.to, columns].join();
      const [held, waiting] = this.charted.get(key, () => [
        meanCounts(holds, this.from, this.to, columns),
        meanCounts(waits, this.from, this.to, columns),
      ]);
      this.drawChart(context, AXIS, held, 1, `${clean(lock.name)} held`, this.theme.states[0], percent);
      const most = Math.max(1, Math.ceil(waiting.reduce((a, b) => Math.max(a, b), 0)));
      this.drawChart(context, AXIS + CHART, waiting, most, "threads waiting", this.theme.states[WAITING], (n) => n.toFixed(n < 10 ? 1 : 0));
    }
    this.drawCrosshair(context, height);
  }

  private drawAxis(context: CanvasRenderingContext2D): void {
    const span = this.to - this.from;
    const step = niceStep((span / (this.width() - GUTTER)) * 110);
    context.font = SMALL;
    context.fillStyle = this.theme.muted;
    context.fillText(`${duration(span)} shown`, 8, AXIS / 2);
    for (let time = Math.ceil(this.from / step) * step; time <= this.to; time += step) {
      const x = this.xOf(time);
      context.fillStyle = this.theme.line;
      context.fillRect(Math.round(x), AXIS - 6, 1, 6);
      context.fillStyle = this.theme.muted;
      if (x < this.width() - 50) context.fillText(moment(time, step), x + 4, AXIS / 2);
    }
  }

  private drawChart(
    context: CanvasRenderingContext2D,
    top: number,
    values: Float64Array,
    most: number,
    label: string,
    color: string,
    format: (value: number) => string,
  ): void {
    const [base, tall] = [top + CHART - 3, CHART - 9];
    const width = (this.width() - GUTTER) / values.length;
    context.fillStyle = this.theme.line;
    context.fillRect(GUTTER, base, this.width() - GUTTER, 1);
    context.fillRect(GUTTER, base - tall, this.width() - GUTTER, 0.5);
    context.beginPath();
    context.moveTo(GUTTER, base);
    values.forEach((value, column) => {
      const y = base - (value / most) * tall;
      context.lineTo(GUTTER + column * width, y);
      context.lineTo(GUTTER + (column + 1) * width, y);
    });
    context.lineTo(this.width(), base);
    context.fillStyle = color;
    context.globalAlpha = 0.75;
    context.fill();
    context.globalAlpha = 1;
    context.font = FONT;
    context.fillStyle = this.theme.text;
    context.fillText(fitted(context, label, GUTTER - 16), 8, top + 15);
    context.font = SMALL;
    context.fillStyle = this.theme.muted;
    const column = this.pointer && this.pointer.x >= GUTTER ? Math.floor((this.pointer.x - GUTTER) / width) : -1;
    const mean = values.reduce((a, b) => a + b, 0) / values.length;
    const now = column >= 0 ? `${format(values[column] ?? 0)} here` : `${format(mean)} on average`;
    context.fillText(fitted(context, `${now}, of ${format(most)}`, GUTTER - 16), 8, top + 31);
  }

  private drawOverview(): void {
    const [context] = this.context(this.overview, OVERVIEW);
    const width = this.width() - GUTTER;
    context.clearRect(0, 0, this.width(), OVERVIEW);
    context.font = SMALL;
    context.fillStyle = this.theme.muted;
    context.fillText(`whole recording: ${duration(this.trace.summary.length)}`, 8, OVERVIEW / 2);
    context.fillStyle = this.theme.states[2];
    context.fillRect(GUTTER, 4, width, OVERVIEW - 8);
    if (this.lockEdges) {
      const columns = Math.max(1, Math.round(width));
      const { lock, holds, waits } = this.lockEdges;
      const [held, waiting] = this.overviewed.get([lock.id, columns].join(), () => [
        meanCounts(holds, 0, this.length, columns),
        meanCounts(waits, 0, this.length, columns),
      ]);
      const layers: [Float64Array, number, string][] = [
        [held, 1, this.theme.states[0]],
        [waiting, 0, this.theme.states[WAITING]],
      ];
      for (const [values, fixed, color] of layers) {
        const most = fixed || Math.max(1, values.reduce((a, b) => Math.max(a, b), 0));
        const half = (OVERVIEW - 8) / 2;
        const base = fixed ? 4 + half : OVERVIEW - 4;
        context.fillStyle = color;
        values.forEach((value, column) => {
          const tall = (value / most) * (half - 1);
          context.fillRect(GUTTER + column, base - tall, 1, tall);
        });
      }
    }
    const [left, right] = [this.from, this.to].map((time) => GUTTER + (time / this.length) * width);
    context.fillStyle = this.theme.panel;
    context.globalAlpha = 0.65;
    context.fillRect(GUTTER, 2, left - GUTTER, OVERVIEW - 4);
    context.fillRect(right, 2, this.width() - right, OVERVIEW - 4);
    context.globalAlpha = 1;
    context.strokeStyle = this.theme.accent;
    context.lineWidth = 1.5;
    context.strokeRect(left, 2, Math.max(right - left, 2), OVERVIEW - 4);
  }

  private drawTooltip(): void {
    const { pointer } = this;
    const thread = pointer && !pointer.head ? this.shown[Math.floor((pointer.y + this.scroller.scrollTop) / ROW)] : undefined;
    const slice = thread === undefined || !pointer || pointer.x < GUTTER ? -1 : this.sliceNear(thread, pointer.x);
    this.tooltip.hidden = slice < 0;
    if (slice < 0 || thread === undefined || !pointer) return;
    const facts = this.facts({ thread, slice });
    this.tooltip.replaceChildren(...this.tooltipLines(facts));
    const right = pointer.x > this.width() / 2;
    this.tooltip.style.left = right ? "" : `${pointer.x + 14}px`;
    this.tooltip.style.right = right ? `${this.width() - pointer.x + 14}px` : "";
    this.tooltip.style.top = `${this.scroller.offsetTop + pointer.y + 18}px`;
  }

  private tooltipLines(facts: Facts): HTMLElement[] {
    const { name, state, start, end, what, others, marks } = facts;
    const lines = [
      h("div", { class: "who" }, h("bdi", {}, clean(name))),
      h("div", {}, swatch(state), ` ${STATES[state]} for ${duration(end - start)}`),
      h("div", { class: "muted" }, `from ${moment(start, end - start)}${what ? ` · ${clean(what)}` : ""}`),
    ];
    if (others.length > 0) lines.push(h("div", {}, state === WAITING ? "Held meanwhile by" : "Waiting meanwhile"));
    for (const [thread, time] of others.slice(0, 4)) {
      lines.push(h("div", { class: "share" }, h("bdi", {}, clean(this.trace.threads[thread].name)), ` ${percent(time / (end - start))}`));
    }
    if (others.length > 4) lines.push(h("div", { class: "muted" }, `and ${others.length - 4} more`));
    if (marks.length > 0) lines.push(h("div", { class: "marks" }, marks.map((mark) => clean(mark.name)).join(", ")));
    return lines;
  }
}

/** The painted states, and what they show. */
interface Painted {
  key: string;
  image: ImageData;
  from: number;
  span: number;
  palette: Palette;
}

function pixelsOf({ data, width, height }: ImageData): Pixels {
  return { data: new Uint32Array(data.buffer), width, height };
}

/** The last thing that was computed, and for what. */
class Remembered<T> {
  private key: string | null = null;
  private value!: T;

  get(key: string, compute: () => T): T {
    if (key !== this.key) [this.key, this.value] = [key, compute()];
    return this.value;
  }
}

/** A sample of a state's colour. */
export function swatch(state: number): HTMLElement {
  return h("span", { class: `swatch ${STATES[state]}` });
}

function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= least) ?? 10 * power;
}

function fitted(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle;
    else high = middle - 1;
  }
  return low > 0 ? `${text.slice(0, low)}…` : "";
}
