// What pointer and wheel do to the timeline.
import type { Pointer } from "./scene";
import type { View } from "./view";

export interface Gestures {
  /** The pointer is here, or gone. */
  hover(pointer: Pointer | null): void;
  /** The rows were clicked, at a place in the canvas. */
  click(x: number, y: number): void;
  /** A stretch of time is being drawn. */
  range(from: number, to: number): void;
}

export interface Canvases {
  overview: HTMLCanvasElement;
  head: HTMLCanvasElement;
  rows: HTMLCanvasElement;
}

/** The pointer moves so far, in pixels, before that is more than a click. */
const MOVED = 4;

export function listen({ overview, head, rows }: Canvases, view: View, gestures: Gestures): void {
  drag(rows, false, view, gestures);
  drag(head, true, view, gestures);
  brush(overview, view);
  for (const canvas of [rows, head]) {
    canvas.addEventListener("wheel", (event) => wheel(event, view), { passive: false });
    canvas.addEventListener("dblclick", (event) => event.offsetX > view.gutter && view.zoom(0.25, view.timeAt(event.offsetX)));
    canvas.addEventListener("pointerleave", () => gestures.hover(null));
    pinch(canvas, view);
  }
}

/** Draws a range with the mouse, or on the charts with a finger; pans with Shift, or on the rows with a finger. */
function drag(canvas: HTMLCanvasElement, head: boolean, view: View, { hover, click, range }: Gestures): void {
  let start: { x: number; time: number; last: number; pans: boolean } | null = null;
  let moved = false;
  const timeAt = (x: number) => view.timeAt(Math.min(Math.max(x, view.gutter), view.width));
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const x = event.offsetX;
    start = event.isPrimary ? { x, last: x, time: timeAt(x), pans: event.shiftKey || (event.pointerType === "touch" && !head) } : null;
    moved = false;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const x = event.offsetX;
    hover({ x, y: event.offsetY, head });
    if (!start) return;
    moved ||= Math.abs(x - start.x) >= MOVED;
    if (!moved) return;
    if (start.pans) {
      view.pan((start.last - x) / view.scale);
      start.last = x;
    } else if (start.x >= view.gutter) {
      range(Math.min(start.time, timeAt(x)), Math.max(start.time, timeAt(x)));
    }
  });
  canvas.addEventListener("pointerup", (event) => {
    if (start && !moved && !head) click(event.offsetX, event.offsetY);
    start = null;
  });
  canvas.addEventListener("pointercancel", () => (start = null));
}

/** Zooms with two fingers. */
function pinch(canvas: HTMLCanvasElement, view: View): void {
  const fingers = new Map<number, number>();
  const gap = () => {
    const [a, b] = [...fingers.values()];
    return Math.max(Math.abs(a - b), 20);
  };
  canvas.addEventListener("pointerdown", (event) => event.pointerType === "touch" && fingers.set(event.pointerId, event.offsetX));
  canvas.addEventListener("pointermove", (event) => {
    if (!fingers.has(event.pointerId)) return;
    if (fingers.size !== 2) return void fingers.set(event.pointerId, event.offsetX);
    const before = gap();
    fingers.set(event.pointerId, event.offsetX);
    const [a, b] = [...fingers.values()];
    view.zoom(before / gap(), view.timeAt((a + b) / 2));
  });
  for (const end of ["pointerup", "pointercancel"] as const) canvas.addEventListener(end, (event) => fingers.delete(event.pointerId));
}

/** Chooses a stretch of the whole axis by drawing over it, or a moment by clicking. */
function brush(overview: HTMLCanvasElement, view: View): void {
  let start: number | null = null;
  const timeAt = (event: PointerEvent) => {
    const width = overview.clientWidth - view.gutter;
    return (Math.min(Math.max(event.offsetX - view.gutter, 0), width) / width) * view.length;
  };
  const far = (from: number, to: number) => Math.abs(to - from) * overview.clientWidth > view.length * MOVED;
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
