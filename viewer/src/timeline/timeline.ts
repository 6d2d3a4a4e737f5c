// The timeline of all recordings of the page: an overview, charts of the lock, and rows of processes, pools and threads.
import { h } from "../dom";
import { count, duration } from "../format";
import { holdEdges, waitEdges } from "../series";
import { onThemeChange, theme } from "../theme";
import type { Group, Lock, Trace } from "../trace";
import { arranged, keyOf, type Order, opensPools, poolKeys, rowAt, rowOf } from "./arrange";
import { extent, type Selection } from "./facts";
import { firstState, stateAt, stateBehind, stateBeside, under } from "./find";
import { headDrawer } from "./head";
import { listen } from "./input";
import { helpFor, type Key, listenToKeys } from "./keys";
import { MOST_TALL } from "./layout";
import { overviewDrawer } from "./overview";
import { rowDrawer } from "./rows";
import type { Range, Scene, Watched } from "./scene";
import { Toolbar } from "./toolbar";
import { tooltipDrawer } from "./tooltip";
import { View } from "./view";

/** All that the user can choose, for links to it. */
export interface State {
  from: number;
  to: number;
  selection: Selection | null;
  range: Range | null;
  toggled: string[];
  text: string;
  order: Order;
}

export interface Listener {
  select?(selection: Selection | null): void;
  range?(range: Range | null): void;
  view?(): void;
}

export class Timeline {
  readonly element: HTMLElement;
  readonly view: View;

  private readonly listeners: Listener[] = [];
  private readonly spacer = h("div");
  private readonly scroller: HTMLElement;
  private readonly scene: Scene;
  private readonly toolbar: Toolbar;
  private readonly drawers: (() => void)[];
  private toggled = new Set<string>();
  private frame = 0;

  /** `rank` is where a group comes in the order of appearance. */
  constructor(
    private readonly traces: Trace[],
    private readonly rank: (group: Group, trace: Trace) => number,
  ) {
    const overview = h("canvas", { class: "overview", "aria-hidden": "true" });
    const head = h("canvas", { class: "head", "aria-hidden": "true" });
    const tooltip = h("div", { class: "tooltip", hidden: true });
    const rows = h("canvas", { class: "rows", tabindex: 0, role: "application", "aria-roledescription": "timeline", "aria-label": description(traces) });
    this.scroller = h("div", { class: "scroller" }, rows, this.spacer);
    const length = Math.max(...traces.map(({ end }) => end), 1);
    this.view = new View(length, this.scroller, () => {
      this.redraw();
      this.tell("view");
    });
    this.scene = { traces, view: this.view, theme: theme(), rows: [], selection: null, range: null, pointer: null, watched: [] };
    const keys = this.keys();
    const help = helpFor(keys);
    keys.push({ keys: ["?"], shown: ["?"], does: "this help", act: () => help.showModal() });
    this.toolbar = new Toolbar(traces.length === 1 ? traces[0].locks : [], {
      arrange: () => this.rearranged(),
      watch: (lock) => this.change({ watched: [watched(traces[0], lock)] }),
      zoom: (factor) => this.view.zoom(factor),
      showAll: () => this.view.show(0, this.view.length),
      togglePools: () => this.togglePools(),
      help: () => help.showModal(),
    });
    this.drawers = [rowDrawer(rows, this.scroller, this.scene), headDrawer(head, this.scene), overviewDrawer(overview, this.scene), tooltipDrawer(tooltip, this.scroller, this.scene)];
    this.element = h(
      "div",
      { class: "timeline" },
      this.toolbar.element,
      h("div", { class: "canvases" }, overview, head, this.scroller, tooltip),
      h("p", { class: "hints" }, "Drag to select a range, click a state for details, a name to open a pool; ", h("kbd", {}, "Ctrl"), " + wheel zooms. ", h("kbd", {}, "?"), " lists all keys."),
      help,
    );
    listen({ overview, head, rows }, this.view, {
      hover: (pointer) => this.change({ pointer }),
      click: (x, y) => this.click(x, y),
      range: (from, to) => this.selectRange({ from, to }),
    });
    listenToKeys(rows, keys, () => this.scene.selection !== null);
    new ResizeObserver(() => this.redraw()).observe(this.scroller);
    this.scroller.addEventListener("scroll", () => this.redraw());
    onThemeChange(() => this.change({ theme: theme() }));
    this.arrange();
  }

  /** Calls back when something is selected or another part is shown. */
  listen(listener: Listener): void {
    this.listeners.push(listener);
  }

  /** Draws the charts of the first lock of each recording. */
  watchFirst(): void {
    this.change({ watched: this.traces.flatMap((trace) => (trace.locks[0] ? [watched(trace, trace.locks[0])] : [])) });
  }

  /** Selects what a thread does at a moment, and brings it to where it is seen. */
  selectAt(trace: Trace, thread: number, time: number): void {
    this.selectFound(stateAt(trace, thread, time));
  }

  /** From the selected state, if it waits, to the one that held the lock meanwhile; from there to one that waited. */
  follow(to?: number): void {
    const { selection } = this.scene;
    if (selection && !selection.mark) this.selectFound(stateBehind(selection, to));
  }

  selectRange(range: Range | null): void {
    this.change({ range });
    this.tell("range");
  }

  /** Draws at once: for printing, which does not wait for a frame. */
  draw(): void {
    for (const draw of this.drawers) draw();
  }

  get state(): State {
    const { selection, range } = this.scene;
    const { from, to } = this.view;
    return { from, to, selection, range, toggled: [...this.toggled], text: this.toolbar.text, order: this.toolbar.order };
  }

  set state({ from, to, selection, range, toggled, text, order }: State) {
    this.toggled = new Set(toggled);
    this.toolbar.text = text;
    this.toolbar.order = order;
    this.arrange();
    this.change({ selection, range });
    this.view.show(from, to);
    for (const listener of this.listeners) {
      listener.select?.(selection);
      listener.range?.(range);
    }
  }

  private keys(): Key[] {
    const { view } = this;
    const key = (keys: string[], shown: string[], does: string, act: () => void, shared = false): Key => ({ keys, shown, does, act, shared });
    return [
      key(["ArrowUp", "k"], ["↑", "k"], "thread above", () => this.move(-1, 0), true),
      key(["ArrowDown", "j"], ["↓", "j"], "thread below", () => this.move(1, 0), true),
      key(["ArrowLeft"], ["←"], "state before", () => this.move(0, -1)),
      key(["ArrowRight"], ["→"], "state after", () => this.move(0, 1)),
      key(["Enter"], ["Enter"], "from a wait to the thread that held the lock, and back", () => this.follow(), true),
      key(["f"], ["f"], "zoom to the selection", () => this.fit()),
      key(["r"], ["r"], "sums of what is selected, or shown", () => this.sum()),
      key(["o"], ["o"], "open or close the pool", () => this.togglePool()),
      key(["Escape"], ["Esc"], "select nothing", () => this.deselect()),
      key(["+", "=", "w"], ["+", "w"], "zoom in", () => view.zoom(0.5)),
      key(["-", "s"], ["−", "s"], "zoom out", () => view.zoom(2)),
      key(["a"], ["a"], "pan left", () => view.pan(-view.span / 5)),
      key(["d"], ["d"], "pan right", () => view.pan(view.span / 5)),
      key(["0"], ["0"], "show everything", () => view.show(0, view.length)),
      key(["/"], ["/"], "find a thread, operation or mark", () => this.toolbar.focus()),
    ];
  }

  private redraw(): void {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  private change(changes: Partial<Scene>): void {
    Object.assign(this.scene, changes);
    this.redraw();
  }

  private tell(what: keyof Listener): void {
    const { selection, range } = this.scene;
    for (const listener of this.listeners) {
      if (what === "select") listener.select?.(selection);
      else if (what === "range") listener.range?.(range);
      else listener.view?.();
    }
  }

  /** Applies search, order and what is open. */
  private arrange(): void {
    const { text, order } = this.toolbar;
    const rows = arranged(this.traces, { text, order, toggled: this.toggled, rank: this.rank });
    const total = this.traces.reduce((sum, { threads }) => sum + threads.length, 0);
    this.toolbar.tell(text ? `${count(rows.filter(({ thread }) => thread >= 0).length)} of ${count(total)} threads` : "");
    this.toolbar.offerPools(poolKeys(this.traces).length > 0, this.poolsOpen);
    const tall = Math.max(24, rows.reduce((sum, { height }) => sum + height, 0));
    const visible = Math.min(tall, MOST_TALL);
    this.scroller.style.height = `${visible + 2}px`;
    this.spacer.style.height = `${tall - visible}px`;
    this.change({ rows });
  }

  private rearranged(): void {
    this.arrange();
    this.tell("view");
  }

  private get poolsOpen(): boolean {
    return poolKeys(this.traces).some((key) => this.toggled.has(key) !== opensPools(this.traces));
  }

  private togglePools(): void {
    const differ = this.poolsOpen === opensPools(this.traces);
    for (const key of poolKeys(this.traces)) differ ? this.toggled.add(key) : this.toggled.delete(key);
    this.rearranged();
  }

  private toggle(key: string): void {
    if (!this.toggled.delete(key)) this.toggled.add(key);
    this.rearranged();
  }

  /** Opens or closes the pool of the selected thread. */
  private togglePool(): void {
    const { selection } = this.scene;
    const group = selection && selection.trace.groups[selection.trace.threads[selection.thread].group];
    if (group && group.threads.length > 1) this.toggle(keyOf(selection.trace, group));
  }

  private select(selection: Selection | null): void {
    this.change({ selection });
    this.tell("select");
  }

  private deselect(): void {
    if (this.scene.range) this.selectRange(null);
    this.select(null);
  }

  /** Selects a state and brings it into view; nothing happens where none was found. */
  private selectFound(selection: Selection | null): void {
    if (!selection) return;
    this.reveal(selection);
    this.select(selection);
  }

  private reveal(selection: Selection): void {
    const { trace, thread } = selection;
    if (!rowOf(this.scene.rows, trace, thread)) {
      this.toolbar.text = "";
      this.arrange();
    }
    const row = rowOf(this.scene.rows, trace, thread);
    if (!row) return;
    const { scrollTop, clientHeight } = this.scroller;
    if (row.top < scrollTop || row.top + row.height > scrollTop + clientHeight) this.scroller.scrollTop = row.top - clientHeight / 2;
    const { start, end } = extent(selection);
    this.view.reveal(start, end);
    const y = this.scroller.getBoundingClientRect().top + row.top - this.scroller.scrollTop;
    if (y < 0 || y + row.height > innerHeight) scrollBy({ top: y - innerHeight / 2 });
  }

  private move(rows: number, slices: number): void {
    const { selection } = this.scene;
    this.selectFound(selection ? stateBeside(this.scene, selection, rows, slices) : firstState(this.scene));
  }

  private fit(): void {
    const { selection, range } = this.scene;
    if (range) this.view.show(range.from, range.to);
    else if (selection) {
      const { start, end } = extent(selection);
      this.view.show(start - (end - start) * 0.2, end + (end - start) * 0.2);
    }
  }

  private sum(): void {
    const { selection } = this.scene;
    const { start, end } = selection ? extent(selection) : { start: this.view.from, end: this.view.to };
    this.selectRange({ from: start, to: end });
  }

  /** A click on a name opens or closes a pool; one beside all states, but on a row, selects none. */
  private click(x: number, y: number): void {
    y += this.scroller.scrollTop;
    const row = rowAt(this.scene.rows, y);
    if (!row) return;
    if (row.key && (x < this.view.gutter || row.kind === "process")) this.toggle(row.key);
    else this.select(under(this.scene, x, y));
  }
}

function watched(trace: Trace, lock: Lock): Watched {
  return { trace, lock, holds: holdEdges(lock.holds), waits: waitEdges(trace.threads, lock.id) };
}

function description(traces: Trace[]): string {
  const threads = traces.reduce((sum, trace) => sum + trace.threads.length, 0);
  const length = duration(Math.max(...traces.map(({ end }) => end)));
  return `Timeline of ${threads} threads over ${length}. Up and down choose a thread, left and right a state, Enter goes to the thread that held the lock. The tables below say the same in text.`;
}
