// The timeline of all threads: an overview, two charts of the lock and a row for each thread.
import { h } from "../dom";
import { count, duration } from "../format";
import { holdEdges, waitEdges } from "../series";
import { onThemeChange, theme } from "../theme";
import type { Lock, Trace } from "../trace";
import { arranged } from "./arrange";
import { type Facts, factsAbout, type Selection } from "./facts";
import { firstState, stateAt, stateBehind, stateBeside, stateUnder, threadUnder } from "./find";
import { headDrawer } from "./head";
import { listen } from "./input";
import { MOST_ROWS_SHOWN, ROW } from "./layout";
import { overviewDrawer } from "./overview";
import { rowDrawer } from "./rows";
import type { Scene } from "./scene";
import { hints, Toolbar } from "./toolbar";
import { tooltipDrawer } from "./tooltip";
import { View } from "./view";

export class Timeline {
  readonly element: HTMLElement;
  readonly view: View;
  onselect: (facts: Facts | null) => void = () => {};
  onview: () => void = () => {};

  private readonly spacer = h("div");
  private readonly scroller: HTMLElement;
  private readonly scene: Scene;
  private readonly toolbar: Toolbar;
  private readonly drawers: (() => void)[];
  private frame = 0;

  constructor(private readonly trace: Trace) {
    const overview = h("canvas", { class: "overview", "aria-hidden": "true" });
    const head = h("canvas", { class: "head", "aria-hidden": "true" });
    const tooltip = h("div", { class: "tooltip", hidden: true });
    const rows = h("canvas", {
      class: "rows",
      tabindex: 0,
      role: "application",
      "aria-roledescription": "timeline",
      "aria-label": label(trace),
    });
    this.scroller = h("div", { class: "scroller" }, rows, this.spacer);
    this.view = new View(Math.max(trace.summary.length, 1), this.scroller, () => {
      this.redraw();
      this.onview();
    });
    this.scene = { trace, view: this.view, theme: theme(), shown: [], selection: null, pointer: null, watched: null };
    this.toolbar = new Toolbar(this.view, trace.locks, () => this.arrange(), (lock) => this.watch(lock));
    this.drawers = [
      rowDrawer(rows, this.scroller, this.scene),
      headDrawer(head, this.scene),
      overviewDrawer(overview, this.scene),
      tooltipDrawer(tooltip, this.scroller, this.scene),
    ];
    this.element = h(
      "div",
      { class: "timeline" },
      this.toolbar.element,
      h("div", { class: "canvases" }, overview, head, this.scroller, tooltip),
      hints(),
    );
    listen({ overview, head, rows }, this.view, {
      hover: (pointer) => this.change({ pointer }),
      click: (x, y) => this.click(x, y),
      move: (rows, slices) => this.move(rows, slices),
      follow: () => this.follow(),
      fit: () => this.fit(),
      deselect: () => this.select(null),
      search: () => this.toolbar.focus(),
    });
    new ResizeObserver(() => this.redraw()).observe(this.scroller);
    this.scroller.addEventListener("scroll", () => this.redraw());
    onThemeChange(() => this.change({ theme: theme() }));
    this.arrange();
  }

  /** Draws the charts for a lock. */
  watch(lock: Lock | undefined): void {
    this.change({ watched: lock ? { lock, holds: holdEdges(lock.holds), waits: waitEdges(this.trace.threads, lock.id) } : null });
  }

  /** Selects what a thread does at a moment. */
  selectAt(thread: number, time: number): void {
    this.selectFound(stateAt(this.trace, thread, time));
  }

  /** From the selected state, if it waits, to the one that held the lock meanwhile; from there to one that waited. */
  follow(to?: number): void {
    const { selection } = this.scene;
    if (selection) this.selectFound(stateBehind(this.trace, selection, to));
  }

  /** Draws at once: for printing, which does not wait for a frame. */
  draw(): void {
    for (const draw of this.drawers) draw();
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

  /** Applies search and order. */
  private arrange(): void {
    const { text, chosenOrder } = this.toolbar;
    const shown = arranged(this.trace, text, chosenOrder);
    this.toolbar.tell(text ? `${count(shown.length)} of ${count(this.trace.threads.length)} threads` : "");
    const rows = Math.max(1, shown.length);
    const visible = Math.min(rows, MOST_ROWS_SHOWN);
    this.scroller.style.height = `${visible * ROW + 2}px`;
    this.spacer.style.height = `${(rows - visible) * ROW}px`;
    this.change({ shown });
  }

  private select(selection: Selection | null): void {
    this.onselect(selection && factsAbout(this.trace, selection));
    this.change({ selection });
  }

  /** Selects a state and brings it into view; nothing happens where none was found. */
  private selectFound(selection: Selection | null): void {
    if (!selection) return;
    this.reveal(selection);
    this.select(selection);
  }

  private reveal({ thread, slice }: Selection): void {
    if (!this.scene.shown.includes(thread)) {
      this.toolbar.clear();
      this.arrange();
    }
    const top = this.scene.shown.indexOf(thread) * ROW;
    const { scrollTop, clientHeight } = this.scroller;
    if (top < scrollTop || top + ROW > scrollTop + clientHeight) this.scroller.scrollTop = top - clientHeight / 2;
    const { starts } = this.trace.threads[thread].slices;
    this.view.reveal(starts[slice], starts[slice + 1]);
  }

  private move(rows: number, slices: number): void {
    const { selection } = this.scene;
    this.selectFound(selection ? stateBeside(this.scene, selection, rows, slices) : firstState(this.scene));
  }

  private fit(): void {
    const { selection } = this.scene;
    if (!selection) return;
    const { start, end } = factsAbout(this.trace, selection);
    this.view.show(start - (end - start) * 0.2, end + (end - start) * 0.2);
  }

  /** A click beside all states, but on a row, selects none. */
  private click(x: number, y: number): void {
    y += this.scroller.scrollTop;
    if (threadUnder(this.scene, y) !== undefined) this.select(stateUnder(this.scene, x, y));
  }
}

function label({ threads, summary }: Trace): string {
  return `Timeline of ${threads.length} threads over ${duration(summary.length)}. Up and down choose a thread, left and right a state, Enter goes to the thread that held the lock. The tables below say the same in text.`;
}
