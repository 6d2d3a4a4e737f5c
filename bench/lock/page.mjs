// Measures how smoothly the report page moves: node bench/lock/page.mjs [result.json]
//
// The trace has a million events of a hundred threads, the browser is a Chromium without a graphics processor. The figures are
// the size of the page, the time to its first paint, and, while the timeline pans by 24 pixels a frame at three zoom levels, the
// time between frames and the time that the page works for each frame.
// Needs `cargo build --bin offlock`, `cargo build -p offlock-core --example simulate` and the packages of viewer/.
import { statSync } from "node:fs";
import { launch, open, report } from "../../viewer/test/browser.mjs";
import { keep, row } from "../results.mjs";

const FRAMES = 180;
const ZOOMS = { half: 1, near: 3, close: 8 };

const quantile = (ordered, share) => ordered[Math.min(ordered.length - 1, Math.floor(ordered.length * share))];

/** Returns the milliseconds between frames, sorted. Every frame has a wheel event. */
const pan = (page) =>
  page.evaluate(
    (frames) =>
      new Promise((done) => {
        const rows = document.querySelector("canvas.rows");
        const times = [];
        let last = 0;
        let count = 0;
        const step = (now) => {
          if (last > 0) times.push(now - last);
          last = now;
          if (count++ === frames) return done(times.sort((a, b) => a - b));
          const deltaX = count % 40 < 20 ? 24 : -24;
          rows.dispatchEvent(new WheelEvent("wheel", { deltaX, bubbles: true, cancelable: true }));
          requestAnimationFrame(step);
        };
        requestAnimationFrame(step);
      }),
    FRAMES,
  );

/** Returns the milliseconds that the page has worked so far: in scripts, and in total. */
async function work(session) {
  const { metrics } = await session.send("Performance.getMetrics");
  return ["ScriptDuration", "TaskDuration"].map((name) => metrics.find((metric) => metric.name === name).value * 1000);
}

const path = report("million");
const browser = await launch();
const page = await open(browser, path);
const session = await page.context().newCDPSession(page);
await session.send("Performance.enable");
const painted = await page.evaluate(() => performance.getEntriesByName("offlock-painted")[0].startTime);
const rows = [row("a million events", { page_bytes: statSync(path).size, first_paint_ms: Math.round(painted) })];
for (const [name, zooms] of Object.entries(ZOOMS)) {
  await page.locator("canvas.rows").focus();
  await page.keyboard.press("0");
  for (let i = 0; i < zooms; i++) await page.keyboard.press("+");
  const before = await work(session);
  const times = await pan(page);
  const [script_ms, task_ms] = (await work(session)).map((after, i) => Math.round(((after - before[i]) / FRAMES) * 10) / 10);
  const [p50, p95, max] = [0.5, 0.95, 1].map((share) => Math.round(quantile(times, share) * 10) / 10);
  rows.push(row(`pan, ${name}`, { frames: times.length, p50_ms: p50, p95_ms: p95, max_ms: max, script_ms, task_ms }));
}
for (const { case: name, figures } of rows) console.log(name, figures);
keep(process.argv[2], rows, { chromium: browser.version() });
await browser.close();
