// What the parts of the timeline have in common: all that is drawn follows from it.
import type { Edges } from "../series";
import type { Theme } from "../theme";
import type { Lock, Trace } from "../trace";
import type { Row } from "./arrange";
import type { Selection } from "./facts";
import type { View } from "./view";

/** Where the pointer is, and whether it is over the charts or over the rows. */
export interface Pointer {
  x: number;
  y: number;
  head: boolean;
}

/** The lock of a recording that the charts are about. */
export interface Watched {
  trace: Trace;
  lock: Lock;
  holds: Edges;
  waits: Edges;
}

/** A stretch of time that is selected, in nanoseconds. */
export interface Range {
  from: number;
  to: number;
}

export interface Scene {
  readonly traces: Trace[];
  readonly view: View;
  theme: Theme;
  /** From the top down. */
  rows: Row[];
  selection: Selection | null;
  range: Range | null;
  pointer: Pointer | null;
  watched: Watched[];
}
