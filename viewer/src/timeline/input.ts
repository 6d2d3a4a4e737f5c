// What pointer, wheel and keys do to the timeline.
import { GUTTER } from "./layout";
import type { Pointer } from "./scene";
import type { View } from "./view";

export interface Actions {
  /** The pointer is here, or gone. */
  hover(pointer: Pointer | null): void;
  /** The rows were clicked, at a place in the canvas. */
  click(x: number, y: number): void;
  /** By rows or by slices. */
  move(rows: number, slices: number): void;
  /** To the thread that held the lock. */
  follow(): void;
  /** Zooms to the selected state. */
  fit(): void;
  deselect(): void;
  search(): void;
}

export interface Canvases {
  overview: HTMLCanvasElement;
  head: HTMLCanvasElement;
  rows: HTMLCanvasElement;
}

export function listen({ overview, head, rows }: Canvases, view: View, actions: Actions): void {
  rows.addEventListener("keydown", (event) => press(event, view, actions));
  drag(rows, false, view, actions);
  drag(head, true, view, actions);
  brush(overview, view);
  for (const canvas of [rows, head]) {
    canvas.addEventListener("wheel", (event) => wheel(event, view), { passive: false });
    canvas.addEventListener("dblclick", (event) => view.zoom(0.25, view.timeAt(event.offsetX)));
    canvas.addEventListener("pointerleave", () => actions.hover(null));
  }
}

function drag(canvas: HTMLCanvasElement, head: boolean, view: View, { hover, click }: Actions): void {
  let last: number | null = null;
  let moved = 0;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    [last, moved] = [event.clientX, 0];
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    hover({ x: event.offsetX, y: event.offsetY, head });
    if (last === null) return;
    const by = event.clientX - last;
    moved += Math.abs(by);
    if (moved > 3) {
      view.pan(-by / view.scale);
      last = event.clientX;
      moved += 4;
    }
  });
  canvas.addEventListener("pointerup", (event) => {
    if (last !== null && moved <= 3 && !head) click(event.offsetX, event.offsetY);
    last = null;
  });
  canvas.addEventListener("pointercancel", () => (last = null));
}

/** Chooses a stretch of the whole recording by drawing over it, or a moment by clicking. */
function brush(overview: HTMLCanvasElement, view: View): void {
  let start: number | null = null;
  const timeAt = (event: PointerEvent) => {
    const width = overview.clientWidth - GUTTER;
    return (Math.min(Math.max(event.offsetX - GUTTER, 0), width) / width) * view.length;
  };
  const far = (from: number, to: number) => Math.abs(to - from) * overview.clientWidth > view.length * 3;
  overview.addEventListener("pointerdown", (event) => {
    start = timeAt(event);
    overview.setPointerCapture(event.pointerId);
  });
  overview.addEventListener("pointermove", (event) => {
    if (start === null) return;
    const time = timeAt(event);
    if (far(start, time)) view.show(Math.min(start, time), Math.max(start, time));
  });
  overview.addEventListener("pointerup", (event) => {
    const time = timeAt(event);
    const { span } = view;
    if (start !== null && !far(start, time)) view.show(time - span / 2, time + span / 2);
    start = null;
  });
}

function wheel(event: WheelEvent, view: View): void {
  if (event.ctrlKey || event.metaKey) {
    view.zoom(Math.exp(Math.min(Math.max(event.deltaY, -60), 60) * 0.01), view.timeAt(event.offsetX));
  } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) {
    view.pan((event.deltaX || event.deltaY) / view.scale);
  } else {
    return;
  }
  event.preventDefault();
}

function press(event: KeyboardEvent, view: View, { move, follow, fit, deselect, search }: Actions): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const nearer = () => view.zoom(0.5);
  const farther = () => view.zoom(2);
  const act = {
    ArrowUp: () => move(-1, 0),
    ArrowDown: () => move(1, 0),
    ArrowLeft: () => move(0, -1),
    ArrowRight: () => move(0, 1),
    Enter: follow,
    Escape: deselect,
    a: () => view.pan(-view.span / 5),
    d: () => view.pan(view.span / 5),
    "+": nearer,
    "=": nearer,
    w: nearer,
    "-": farther,
    s: farther,
    "0": () => view.show(0, view.length),
    f: fit,
    "/": search,
  }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}
