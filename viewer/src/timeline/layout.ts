// Measures of the timeline in CSS pixels, and its fonts.

/** The width of the threads' names, left of what lies on the axis of time: in a narrow window there is less of it. */
export const gutterOf = (width: number): number => (width < 600 ? 104 : 184);
/** The rows of a thread, of a pool whose threads are hidden, and of a process. */
export const ROW = 24;
export const POOL = 40;
export const PROCESS = 46;
/** How far a row's bar is from the row's edges. */
export const PAD = 3;
/** A lane of marks below the bar of a thread, and the most lanes. */
export const LANE = 13;
export const MOST_LANES = 4;
export const INDENT = 12;
export const OVERVIEW = 44;
export const AXIS = 22;
export const CHART = 46;
export const MOST_TALL = 680;
export const FONT = "12px system-ui, sans-serif";
export const SMALL = "11px system-ui, sans-serif";

/** The number of real pixels in a CSS pixel, as far as they are drawn. */
export function pixelRatio(): number {
  return Math.min(devicePixelRatio || 1, 3);
}
