// A real Chromium, and pages made by the command from made-up traces.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const target = fileURLToPath(new URL("../../target/debug", import.meta.url));
export const offlock = process.env.OFFLOCK ?? join(target, "offlock");
const simulate = process.env.SIMULATE ?? join(target, "examples", "simulate");
export const folder = mkdtempSync(join(tmpdir(), "offlock-viewer-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

const flags = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export const launch = () =>
  chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", headless: true, args: flags });

/** The path of a made-up trace. */
export function trace(kind) {
  const path = join(folder, `${kind}.offlock`);
  execFileSync(simulate, [kind, path]);
  return path;
}

/** The path of the report on a made-up trace. */
export function report(kind) {
  const page = join(folder, `${kind}.html`);
  execFileSync(offlock, ["report", trace(kind), "-o", page], { stdio: "ignore" });
  return page;
}

/** The path of the report on made-up traces, as if they were the processes of one run. */
export function processes(...kinds) {
  const page = join(folder, "processes.html");
  execFileSync(offlock, ["report", ...kinds.map(trace), "-o", page], { stdio: "ignore" });
  return page;
}

/** The path of the page that compares two made-up traces. */
export function comparison(before, after) {
  const page = join(folder, "compare.html");
  execFileSync(offlock, ["compare", trace(before), trace(after), "--report", page], { stdio: "ignore" });
  return page;
}

/** What the command says about a made-up trace. */
export function summary(kind) {
  return JSON.parse(execFileSync(offlock, ["export", "-f", "json", trace(kind), "-o", "-"], { maxBuffer: 1 << 28 }));
}

/** Opens a page from disk, collects what goes wrong in it and waits until it is complete. */
export async function open(browser, path, options = {}) {
  const page = await browser.newPage({ viewport: { width: 1360, height: 900 }, ...options });
  page.problems = [];
  page.requests = [];
  page.on("pageerror", (error) => page.problems.push(String(error)));
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && page.problems.push(message.text()));
  page.on("request", (request) => page.requests.push(request.url()));
  const [file, fragment] = path.split("#");
  await page.goto(`${pathToFileURL(file)}${fragment ? `#${fragment}` : ""}`);
  await page.waitForFunction(() => performance.getEntriesByName("offlock-complete").length > 0);
  return page;
}
