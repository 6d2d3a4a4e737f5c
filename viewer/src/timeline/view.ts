// The part of the recording that is shown, and where its moments lie on the canvases.
import { gutterOf, pixelRatio } from "./layout";

/** In nanoseconds. */
const SHORTEST = 50;

export class View {
  from = 0;
  to: number;

  constructor(
    /** Of the whole axis. */
    readonly length: number,
    private readonly scroller: HTMLElement,
    private readonly changed: () => void,
  ) {
    this.to = length;
  }

  /** Of the canvases, names included. */
  get width(): number {
    return Math.max(this.scroller.clientWidth, 200);
  }

  /** Of the names alone. */
  get gutter(): number {
    return gutterOf(this.width);
  }

  get span(): number {
    return this.to - this.from;
  }

  /** CSS pixels per nanosecond. */
  get scale(): number {
    return (this.width - this.gutter) / this.span;
  }

  timeAt(x: number): number {
    return this.from + (x - this.gutter) / this.scale;
  }

  xOf(time: number): number {
    return this.gutter + (time - this.from) * this.scale;
  }

  /** Shows the time between two moments. */
  show(from: number, to: number): void {
    const span = Math.min(Math.max(to - from, SHORTEST), this.length);
    this.from = Math.min(Math.max(from + (to - from - span) / 2, 0), this.length - span);
    this.to = this.from + span;
    this.changed();
  }

  zoom(factor: number, at = (this.from + this.to) / 2): void {
    const from = at - (at - this.from) * factor;
    this.show(from, from + this.span * factor);
  }

  /** By whole pixels, so that most of what is painted can stay. */
  pan(by: number): void {
    const ratio = pixelRatio();
    const pixel = this.span / (Math.round(this.width * ratio) - Math.round(this.gutter * ratio));
    const whole = Math.round(by / pixel) * pixel;
    this.show(this.from + whole, this.to + whole);
  }

  /** Moves or zooms if a stretch of time is not, or hardly, to be seen. */
  reveal(start: number, end: number): void {
    const { from, to, span } = this;
    const length = end - start;
    if (length > span) this.show(start - length * 0.1, end + length * 0.1);
    else if (start < from || end > to) this.show((start + end - span) / 2, (start + end + span) / 2);
    else if (length / span < 0.002) this.show(start - length * 20, end + length * 20);
  }
}
