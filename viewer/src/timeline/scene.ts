// What the parts of the timeline have in common: all that is drawn follows from it.
import type { Edges } from "../series";
import type { Theme } from "../theme";
import type { Lock, Trace } from "../trace";
import type { Selection } from "./facts";
import type { View } from "./view";

/** Where the pointer is, and whether it is over the charts or over the rows. */
export interface Pointer {
  x: number;
  y: number;
  head: boolean;
}

/** The lock that the charts are about. */
export interface Watched {
  lock: Lock;
  holds: Edges;
  waits: Edges;
}

export interface Scene {
  readonly trace: Trace;
  readonly view: View;
  theme: Theme;
  /** The threads that have a row, from the top down. */
  shown: number[];
  selection: Selection | null;
  pointer: Pointer | null;
  watched: Watched | null;
}
