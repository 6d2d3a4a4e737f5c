// Measures of the timeline in CSS pixels, and its fonts.

/** The width of the threads' names, left of what lies on the axis of time. */
export const GUTTER = 168;
export const ROW = 24;
export const BAR = 17;
export const OVERVIEW = 44;
export const AXIS = 22;
export const CHART = 46;
export const MARK = 3;
export const MOST_ROWS_SHOWN = 28;
export const FONT = "12px system-ui, sans-serif";
export const SMALL = "11px system-ui, sans-serif";

/** The number of real pixels in a CSS pixel, as far as they are drawn. */
export function pixelRatio(): number {
  return Math.min(devicePixelRatio || 1, 3);
}
