// How long contended waits took, on a logarithmic scale.
import { h, s } from "./dom";
import { count, duration } from "./format";
import { logarithmicBins } from "./series";
import type { Trace } from "./trace";
import { contendedWaits } from "./waits";

const WIDTH = 720;
const HEIGHT = 180;
const BASE = HEIGHT - 24;
const LEFT = 8;

export function histogram(trace: Trace): HTMLElement {
  const lengths = trace.threads.flatMap((_, thread) => Array.from(contendedWaits(trace, thread), ({ start, end }) => end - start));
  const bins = logarithmicBins(lengths);
  if (bins.length === 0) return h("p", { class: "muted" }, "No thread waited for the lock while another one held it.");
  const most = Math.max(...bins.map((bin) => bin.count));
  const width = (WIDTH - 2 * LEFT) / bins.length;
  const bars = bins.map((bin, i) => {
    const tall = bin.count > 0 ? Math.max(1.5, (bin.count / most) * (BASE - 34)) : 0;
    const title = s("title", {}, `${count(bin.count)} waits of ${duration(bin.from)} to ${duration(bin.to)}`);
    return s("rect", { x: LEFT + i * width + 0.5, y: BASE - tall, width: Math.max(width - 1, 0.5), height: tall, class: "wait" }, title);
  });
  const every = Math.max(1, Math.ceil(70 / width));
  const labels = bins.flatMap((bin, i) => (i % every === 0 && LEFT + i * width < WIDTH - 56 ? [s("text", { x: LEFT + i * width, y: HEIGHT - 8 }, duration(bin.from))] : []));
  const { p50, p99, max: longest } = trace.summary.contended;
  const position = (time: number) => LEFT + (Math.log2(time / bins[0].from) / Math.log2(bins[bins.length - 1].to / bins[0].from)) * (WIDTH - 2 * LEFT);
  const lines = ([["p50", p50], ["p99", p99]] as const).flatMap(([name, time], i) => {
    if (time < bins[0].from) return [];
    const x = position(time);
    const anchor = i === 0 ? (x > 110 ? "end" : "start") : x > WIDTH - 110 ? "end" : "start";
    return [
      s("line", { x1: x, x2: x, y1: 4 + i * 13, y2: BASE, class: "quantile" }),
      s("text", { x: x + (anchor === "end" ? -4 : 4), y: 13 + i * 13, "text-anchor": anchor, class: "quantile" }, `${name} ${duration(time)}`),
    ];
  });
  const label = `Histogram of ${count(lengths.length)} contended waits: half of them took at most ${duration(p50)}, 99% at most ${duration(p99)}, the longest ${duration(longest)}.`;
  return h(
    "figure",
    { class: "histogram" },
    s("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label }, ...bars, s("line", { x1: LEFT, x2: WIDTH - LEFT, y1: BASE, y2: BASE, class: "base" }), ...labels, ...lines) as unknown as HTMLElement,
    h("figcaption", {}, `${count(lengths.length)} contended waits, the longest ${duration(longest)}. ${count(trace.summary.waits.count - lengths.length)} further ones found the lock free and are left out.`),
  );
}
