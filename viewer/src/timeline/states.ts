// The states of the visible threads and pools as pixels, of which most stay when the view pans.
import { type Band, type Palette, paintPool, paintStates, type Pixels, type Range, shiftColumns } from "../raster";
import { pixel, type Theme } from "../theme";
import type { Slices } from "../trace";

/** A thread, or threads that share a band, which is full with `most` of them. */
export interface Painting {
  lives: Slices[];
  most: number;
}

/** What is to be painted, each into its band, from column `left` on. */
export interface Wanted {
  paintings: Painting[];
  bands: Band[];
  range: Range;
  left: number;
  theme: Theme;
  /** Real pixels per CSS pixel. */
  ratio: number;
  /** Differs where what is painted already does not fit. */
  key: string;
}

interface Painted {
  key: string;
  image: ImageData;
  from: number;
  span: number;
  palette: Palette;
}

/** What puts the states into the whole of a canvas. */
export function stateDrawer(): (context: CanvasRenderingContext2D, wanted: Wanted) => void {
  let painted: Painted | null = null;
  return (context, wanted) => {
    if (!painted || !moved(painted, wanted)) painted = paintedAfresh(context, wanted);
    context.putImageData(painted.image, 0, 0);
  };
}

function paintedAfresh(context: CanvasRenderingContext2D, { paintings, bands, range, theme, ratio, key }: Wanted): Painted {
  const { width, height } = context.canvas;
  const image = context.createImageData(width, height);
  const palette = {
    states: theme.states.map(pixel),
    hatch: pixel(theme.panel),
    hatchWidth: Math.max(1, Math.round(ratio)),
    hatchShift: 0,
  };
  paint(image, palette, paintings, bands, range);
  return { key, image, from: range.from, span: range.to - range.from, palette };
}

function paint(image: ImageData, palette: Palette, paintings: Painting[], bands: Band[], range: Range): void {
  const pixels = pixelsOf(image);
  paintings.forEach(({ lives, most }, row) => {
    const band = bands[row];
    if (band.bottom <= band.top || band.right <= band.left) return;
    if (lives.length === 1) paintStates(pixels, band, lives[0], range, palette);
    else paintPool(pixels, band, lives, most, range, palette);
  });
}

/** Makes what is painted already into what is wanted, if that is the same but for a pan by whole pixels. */
function moved(painted: Painted, { key, range, left, paintings, bands }: Wanted): boolean {
  const span = range.to - range.from;
  const columns = painted.image.width - left;
  if (painted.key !== key || Math.abs(painted.span - span) > span * 1e-9) return false;
  const exact = ((range.from - painted.from) / span) * columns;
  const by = Math.round(exact);
  if (Math.abs(exact - by) > 0.02 || Math.abs(by) >= columns) return false;
  if (by === 0) return true;
  shiftColumns(pixelsOf(painted.image), left, by);
  painted.from += (by / columns) * span;
  const { palette } = painted;
  const hatching = 4 * palette.hatchWidth;
  palette.hatchShift = (((palette.hatchShift + by) % hatching) + hatching) % hatching;
  const [first, last] = by > 0 ? [columns - by, columns] : [0, -by];
  const fresh = bands.map((band) => ({ ...band, left: left + first, right: left + last }));
  const time = (column: number) => painted.from + (column / columns) * span;
  const shifted = { ...palette, hatchShift: palette.hatchShift + first };
  paint(painted.image, shifted, paintings, fresh, { from: time(first), to: time(last) });
  return true;
}

function pixelsOf({ data, width, height }: ImageData): Pixels {
  return { data: new Uint32Array(data.buffer), width, height };
}
