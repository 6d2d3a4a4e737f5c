// Draws the rows: the charts of a process, the states of a pool or a thread, what it worked at, its marks, the selection.
import { clean, count, percent } from "../format";
import { OFF_LOCK, RUNNING, upperBound, WAITING } from "../trace";
import type { Row } from "./arrange";
import { contextOf, fitted } from "./canvas";
import { drawChart, drawLabel, valueHere } from "./chart";
import { highest, rememberedCounts } from "./counts";
import { drawCrosshair } from "./crosshair";
import { FONT, INDENT, pixelRatio, SMALL } from "./layout";
import { drawMarks } from "./marks";
import { drawPieces } from "./pieces";
import { drawRange } from "./range";
import type { Scene } from "./scene";
import { barOf, drawSelection } from "./selection";
import { type Painting, stateDrawer } from "./states";

/** The narrowest state, in pixels, that has its operation's name written into it. */
const NARROWEST_NAMED = 36;
/** With more states than this in view no state is wide enough for a name. */
const MOST_NAMED = 4_000;

export function rowDrawer(canvas: HTMLCanvasElement, scroller: HTMLElement, scene: Scene): () => void {
  const drawStates = stateDrawer();
  const countsOf = rememberedCounts();
  return () => {
    const { view, theme, rows } = scene;
    const { clientHeight: height, scrollTop: scrolled } = scroller;
    const [context, ratio] = contextOf(canvas, view.width, height);
    const visible = rows.filter(({ top, height: tall }) => top + tall > scrolled && top < scrolled + height);
    const { width: wide, height: tall } = canvas;
    const left = Math.round(view.gutter * ratio);
    const withStates = visible.filter(({ kind }) => kind !== "process");
    const bands = withStates.map((row) => {
      const bar = barOf(row);
      const edge = (y: number) => Math.min(Math.max(Math.round((y - scrolled) * ratio), 0), tall);
      return { left, right: wide, top: edge(bar.top), bottom: edge(bar.top + bar.height) };
    });
    const key = [scrolled, wide, tall, theme.panel, ...withStates.flatMap(({ trace, group, thread, top, open }) => [trace.index, group?.index, thread, top, open])].join();
    drawStates(context, { paintings: withStates.map(painting), bands, range: view, left, theme, ratio, key });
    for (const row of visible) {
      const y = row.top - scrolled;
      if (row.kind === "process") drawProcess(context, scene, row, y, countsOf);
      else drawName(context, scene, row, y);
      if (row.kind !== "thread") continue;
      drawOperations(context, scene, row, y);
      drawPieces(context, scene, row, y);
      drawMarks(context, scene, row, y);
    }
    drawRange(context, scene, height);
    drawSelection(context, scene, scrolled);
    drawCrosshair(context, scene, height);
    if (rows.length === 0) {
      context.fillStyle = theme.muted;
      context.fillText("No thread matches.", view.gutter + 12, 12);
    }
  };
}

function painting({ trace, group, thread }: Row): Painting {
  const threads = thread >= 0 ? [thread] : (group?.threads ?? []);
  return { lives: threads.map((each) => trace.threads[each].slices), most: thread >= 0 ? 1 : (group?.peak ?? 1) };
}

/** A triangle that points down if the row is open. */
function drawCaret(context: CanvasRenderingContext2D, open: boolean, x: number, y: number): void {
  context.beginPath();
  if (open) context.roundRect(x, y - 1, 8, 1.5, 0);
  for (const [dx, dy] of open ? [[0, -2], [8, -2], [4, 3]] : [[2, -4], [7, 0], [2, 4]]) context.lineTo(x + dx, y + dy);
  context.closePath();
  context.fill();
}

function drawName(context: CanvasRenderingContext2D, { view, theme, selection }: Scene, row: Row, y: number): void {
  const { kind, trace, group, thread, key, open, inner } = row;
  const bar = barOf(row);
  const middle = y + bar.top - row.top + bar.height / 2 + 0.5;
  const selected = kind === "thread" && selection?.trace === trace && selection.thread === thread;
  context.fillStyle = selected ? theme.accent : theme.text;
  context.font = selected ? `600 ${FONT}` : FONT;
  if (key) drawCaret(context, open, 8, middle);
  const left = key ? 20 : inner ? 8 + INDENT : 8;
  const name = clean(kind === "pool" ? (group?.name ?? "") : trace.threads[thread].name);
  const times = kind === "pool" ? ` ×${count(group?.threads.length ?? 0)}` : "";
  const room = view.gutter - left - 10 - context.measureText(times).width;
  context.fillText(fitted(context, name, room) + times, left, middle);
}

function drawProcess(context: CanvasRenderingContext2D, scene: Scene, row: Row, y: number, countsOf: ReturnType<typeof rememberedCounts>): void {
  const { view, theme, watched } = scene;
  const { trace, open, height } = row;
  context.fillStyle = theme.faint;
  context.globalAlpha = 0.12;
  context.fillRect(0, y + 1, view.width, height - 1);
  context.globalAlpha = 1;
  const charts = watched.find((each) => each.trace === trace);
  let second = "";
  if (charts) {
    const columns = Math.max(1, Math.round((view.width - view.gutter) * pixelRatio()));
    const { held, waiting } = countsOf(charts, view.from, view.to, columns);
    const half = height / 2;
    drawChart(context, scene, { top: y + 2, height: half + 2, values: held, most: 1, color: theme.states[RUNNING] });
    drawChart(context, scene, { top: y + half, height: half + 2, values: waiting, most: Math.ceil(highest(waiting)), color: theme.states[WAITING] });
    second = `${clean(charts.lock.name)} held ${valueHere(held, scene, percent)}`;
  }
  drawLabel(context, scene, y, clean(trace.title), second, 20);
  context.fillStyle = theme.text;
  drawCaret(context, open, 6, y + 15);
}

function drawOperations(context: CanvasRenderingContext2D, { view }: Scene, row: Row, y: number): void {
  const { trace, thread, top } = row;
  const { slices } = trace.threads[thread];
  const bar = barOf(row);
  context.font = SMALL;
  context.fillStyle = "#ffffff";
  const shortest = NARROWEST_NAMED / view.scale;
  const first = Math.max(0, upperBound(slices.starts, view.from, slices.count) - 1);
  const last = upperBound(slices.starts, view.to, slices.count);
  if (last - first > MOST_NAMED) return;
  for (let i = first; i < last; i++) {
    if (slices.states[i] !== OFF_LOCK || slices.starts[i + 1] - slices.starts[i] < shortest) continue;
    const x = Math.max(view.xOf(slices.starts[i]), view.gutter);
    const width = Math.min(view.xOf(slices.starts[i + 1]), view.width) - x;
    const name = clean(trace.names.get(slices.whats[i]) ?? "");
    if (width > 30) context.fillText(fitted(context, name, width - 8), x + 4, y + bar.top - top + bar.height / 2 + 0.5);
  }
}
