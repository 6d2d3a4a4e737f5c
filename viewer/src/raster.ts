// Paints the states of a thread into pixels: each column shows, to scale, the shares of the states in its
// stretch of time, stacked in a fixed order.
import { GC, IDLE, OFF_LOCK, RUNNING, SLEEP, STATES, type Slices, WAITING, upperBound } from "./trace";

/** From the bottom up: with the lock, then without it, then what counts as nothing to do. */
const STACK = [RUNNING, GC, OFF_LOCK, WAITING, SLEEP, IDLE];

export interface Pixels {
  data: Uint32Array;
  width: number;
  height: number;
}

export interface Palette {
  states: number[];
  /** The second colour of the hatching that tells waiting from running without colours. */
  hatch: number;
  hatchWidth: number;
  /** How many columns the hatching has moved along with what was painted before. */
  hatchShift: number;
}

export interface Range {
  from: number;
  to: number;
}

/** One row of pixels to paint into: columns `left` to `right`, lines `top` to `bottom`. */
export interface Band {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

export function paintStates(pixels: Pixels, band: Band, slices: Slices, range: Range, palette: Palette): void {
  const { starts, states, count } = slices;
  const scale = (band.right - band.left) / (range.to - range.from);
  const shares = new Float64Array(STATES.length);
  let column = -1;
  const flush = () => {
    if (column >= 0) paintColumn(pixels, band, column, shares, palette);
    shares.fill(0);
  };
  for (let i = Math.max(0, upperBound(starts, range.from, count) - 1); i < count && starts[i] < range.to; i++) {
    const from = (Math.max(starts[i], range.from) - range.from) * scale;
    const to = (Math.min(starts[i + 1], range.to) - range.from) * scale;
    if (to <= from) continue;
    const first = Math.floor(from);
    const last = Math.floor(to);
    if (first !== column) {
      flush();
      column = first;
    }
    if (first === last) {
      shares[states[i]] += to - from;
      continue;
    }
    shares[states[i]] += first + 1 - from;
    flush();
    if (last > first + 1) fill(pixels, band, first + 1, last, states[i], palette);
    column = last;
    shares[states[i]] = to - last;
  }
  flush();
}

/** Paints the states of several threads on top of each other, to scale if `most` threads fill the band. */
export function paintPool(pixels: Pixels, band: Band, lives: Slices[], most: number, range: Range, palette: Palette): void {
  const columns = band.right - band.left;
  const shares = STATES.map(() => new Float64Array(columns + 1));
  const changes = STATES.map(() => new Float64Array(columns + 2));
  for (const slices of lives) addShares(shares, changes, slices, range, columns);
  const column = new Float64Array(STATES.length);
  const whole = new Float64Array(STATES.length);
  for (let x = 0; x < columns; x++) {
    for (let state = 0; state < STATES.length; state++) {
      whole[state] += changes[state][x];
      column[state] = (shares[state][x] + Math.round(whole[state])) / most;
    }
    paintColumn(pixels, band, x, column, palette);
  }
}

/** Adds the shares of a thread's states in each column; whole columns in a row as a change at their beginning and one at their end. */
function addShares(shares: Float64Array[], changes: Float64Array[], { starts, states, count }: Slices, range: Range, columns: number): void {
  const scale = columns / (range.to - range.from);
  for (let i = Math.max(0, upperBound(starts, range.from, count) - 1); i < count && starts[i] < range.to; i++) {
    const from = (Math.max(starts[i], range.from) - range.from) * scale;
    const to = (Math.min(starts[i + 1], range.to) - range.from) * scale;
    if (to <= from) continue;
    const [first, last] = [Math.floor(from), Math.floor(to)];
    const share = shares[states[i]];
    if (first === last) {
      share[first] += to - from;
      continue;
    }
    share[first] += first + 1 - from;
    share[last] += to - last;
    changes[states[i]][first + 1]++;
    changes[states[i]][last]--;
  }
}

function fill(pixels: Pixels, band: Band, first: number, last: number, state: number, palette: Palette): void {
  for (let y = band.top; y < band.bottom; y++) {
    if (state === WAITING) {
      for (let x = first; x < Math.min(last, band.right - band.left); x++) pixels.data[y * pixels.width + band.left + x] = waitingColor(x, y, palette);
    } else {
      const line = y * pixels.width + band.left;
      pixels.data.fill(palette.states[state], line + first, Math.min(line + last, y * pixels.width + band.right));
    }
  }
}

function waitingColor(x: number, y: number, { states, hatch, hatchWidth, hatchShift }: Palette): number {
  return (x + hatchShift + y) % (4 * hatchWidth) < hatchWidth ? hatch : states[WAITING];
}

function paintColumn(pixels: Pixels, band: Band, column: number, shares: Float64Array, palette: Palette): void {
  const x = band.left + column;
  if (x >= band.right) return;
  const height = band.bottom - band.top;
  let y = band.bottom;
  let share = 0;
  for (const state of STACK) {
    if (shares[state] <= 0) continue;
    share += shares[state];
    // What is there at all is at least one pixel high, or short holds could not be seen.
    const top = Math.max(band.top, Math.min(Math.round(band.bottom - share * height), y - 1));
    while (y > top) {
      y--;
      pixels.data[y * pixels.width + x] = state === WAITING ? waitingColor(column, y, palette) : palette.states[state];
    }
  }
}

/** Moves what is painted right of `left` by some columns to the left (to the right if negative); what comes in is empty. */
export function shiftColumns({ data, width, height }: Pixels, left: number, columns: number): void {
  for (let y = 0; y < height; y++) {
    const [start, end] = [y * width + left, (y + 1) * width];
    if (columns > 0) {
      data.copyWithin(start, start + columns, end);
      data.fill(0, end - columns, end);
    } else {
      data.copyWithin(start - columns, start, end + columns);
      data.fill(0, start, start - columns);
    }
  }
}
