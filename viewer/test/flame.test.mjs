// The code that others waited for, in a real Chromium: the flame graph, and the stacks of a wait.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { comparison, launch, open, report, summary } from "./browser.mjs";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

const section = (page) => page.locator("section.blamed");
const box = (page, name) => section(page).locator(`.box[aria-label^="${name}, "]`);
const told = async (page) => (await section(page).locator(".told").innerText()).replace(/\s+/g, " ");
const matches = (page) => section(page).locator(".matches").innerText();
const wide = async (element) => (await element.boundingBox()).width;

const seconds = (nanoseconds) => `${(nanoseconds / 1e9).toFixed(2)} s`;
const percent = (part, whole) => `${((100 * part) / whole).toFixed(0)}%`;
const milliseconds = (nanoseconds) => `${(nanoseconds / 1e6).toFixed(0)} ms`;

/** How long others waited for a line, or all lines, of a function. */
const lost = ({ code }, name, at) => code.lines.filter((each) => each.function === name && (!at || each.line === at)).reduce((sum, each) => sum + each.lost, 0);

describe("the flame graph", () => {
  test("is as wide as others waited, and has no problems", async () => {
    const page = await open(browser, report("stacks"));
    const expected = summary("stacks");
    const all = box(page, "all");
    assert.equal(await all.getAttribute("aria-label"), `all, ${seconds(expected.code.known)}`);
    const decoder = box(page, "JSONDecoder.decode");
    const time = lost(expected, "JSONDecoder.decode");
    assert.match(await decoder.getAttribute("aria-label"), new RegExp(`^JSONDecoder.decode, ${milliseconds(time)} \\(23%\\), /usr/lib/python3.12/json/decoder.py:337$`));
    assert.ok(Math.abs((await wide(decoder)) / (await wide(all)) - time / expected.code.known) < 0.002);
    assert.equal(await section(page).locator("tbody tr").count(), expected.code.lines.length);
    assert.deepEqual(page.problems, []);
    await page.close();
  });

  test("zooms to what is clicked and back", async () => {
    const page = await open(browser, report("stacks"));
    const all = await wide(box(page, "all"));
    const build = box(page, "Index.build");
    assert.ok((await wide(build)) < all * 0.6);
    await build.click();
    assert.equal(await wide(build), all);
    assert.equal(await box(page, "Server.serve").count(), 0);
    assert.match(await told(page), /^Index.build .*, none in itself \/srv\/app\/index.py:24$/);
    await page.getByRole("button", { name: "All functions" }).click();
    assert.ok((await wide(build)) < all * 0.6);
    assert.equal(await page.getByRole("button", { name: "All functions" }).isVisible(), false);
    await page.close();
  });

  test("works with keys alone, which then do nothing to the timeline", async () => {
    const page = await open(browser, report("stacks"));
    const all = await wide(box(page, "all"));
    const focused = () => page.evaluate(() => document.activeElement?.getAttribute("aria-label")?.split(",")[0]);
    await box(page, "all").focus();
    const keys = [["ArrowDown", "Server.serve"], ["ArrowRight", "Indexer.run"], ["ArrowDown", "Index.build"], ["ArrowUp", "Indexer.run"], ["ArrowLeft", "Server.serve"], ["ArrowRight", "Indexer.run"], ["Enter", "Indexer.run"]];
    for (const [key, name] of keys) {
      await page.keyboard.press(key);
      assert.equal(await focused(), name, key);
    }
    assert.equal(await wide(box(page, "Indexer.run")), all);
    assert.match(await told(page), /^Indexer.run .* \/srv\/app\/index.py:8$/);
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Backspace");
    assert.equal(await focused(), "Indexer.run");
    await page.keyboard.press("Escape");
    assert.equal(await focused(), "all");
    assert.ok((await wide(box(page, "Indexer.run"))) < all * 0.6);
    assert.match(await page.locator(".details").last().innerText(), /^Select a state/);
    await page.close();
  });

  test("says below the pointer what is there, with all lines", async () => {
    const page = await open(browser, report("stacks"));
    await box(page, "Index.tokenize").first().hover();
    const tooltip = section(page).locator(".tooltip");
    const expected = summary("stacks");
    const all = lost(expected, "Index.tokenize");
    const line = (at) => `${at} (${percent(lost(expected, "Index.tokenize", at), all)})`;
    const text = (await tooltip.innerText()).replace(/\s+/g, " ");
    assert.equal(text, `Index.tokenize ${seconds(all)} (${percent(all, expected.code.known)}) /srv/app/index.py, lines ${line(51)}, ${line(52)}`);
    await page.mouse.move(5, 5);
    assert.equal(await tooltip.isVisible(), false);
    await page.close();
  });

  test("finds functions and files, and counts nested ones once", async () => {
    const page = await open(browser, report("stacks"));
    const expected = summary("stacks");
    const find = section(page).getByRole("searchbox");
    await find.fill("render");
    assert.equal(await matches(page), `${seconds(lost(expected, "Server.render"))} (30%)`);
    assert.equal(await section(page).locator(".found").count(), 2);
    await find.fill("DECODER.PY");
    assert.equal(await matches(page), `${milliseconds(lost(expected, "JSONDecoder.decode"))} (23%)`);
    await find.fill("no such function");
    assert.equal(await matches(page), "0 ns (0%)");
    await find.fill("");
    assert.equal(await matches(page), "");
    assert.equal(await section(page).locator(".found, .other").count(), 0);
    await page.close();
  });

  test("shows the time held, which is less than several threads waited", async () => {
    const page = await open(browser, report("stacks"));
    const time = async () => Number(/^all, ([\d.]+) s$/.exec(await box(page, "all").getAttribute("aria-label"))[1]);
    const lost = await time();
    await section(page).getByRole("button", { name: "Time held while others waited" }).click();
    assert.ok((await time()) < lost * 0.7, `${await time()} of ${lost}`);
    assert.equal(await section(page).locator("[aria-pressed=true]").innerText(), "Time held while others waited");
    await page.close();
  });

  test("follows the range that is selected in the timeline", async () => {
    const page = await open(browser, report("stacks"));
    const label = () => box(page, "all").getAttribute("aria-label");
    const whole = await label();
    const wait = page.locator("section:has(> h2:text-is('Longest waits')) tbody tr").first();
    await wait.locator("button").click();
    await page.keyboard.press("r");
    await page.waitForFunction((before) => document.querySelector(".box.all").getAttribute("aria-label") !== before, whole);
    assert.match(await section(page).locator(".note").innerText(), /, in the 23\.8 ms selected in the timeline\./);
    await page.keyboard.press("Escape");
    await page.waitForFunction((before) => document.querySelector(".box.all").getAttribute("aria-label") === before, whole);
    await page.close();
  });
});

test("a wait tells the stacks of the holders and its own", async () => {
  const page = await open(browser, report("stacks"));
  await page.locator("section:has(> h2:text-is('Longest waits')) .link").first().click();
  const stacks = await page.locator(".stack").allInnerTexts();
  const held = stacks.slice(0, -1).map((text) => Number(/^Held the lock for (\d+\.\d+) ms \(\d+%\)/.exec(text)[1]));
  assert.deepEqual(held, held.toSorted((a, b) => b - a), "the longest first");
  const decoding = /\s+JSONDecoder.decode \/usr\/lib\/python3.12\/json\/decoder.py:337\s+Server.handle \/srv\/app\/server.py:33\s+Server.serve/;
  assert.ok(stacks.some((text) => decoding.test(text)), stacks.join("\n"));
  assert.match(stacks[stacks.length - 1], /^Waited for it\s+Server.serve \/srv\/app\/server.py:14$/);
  await page.locator(".chip").first().click();
  assert.match(await page.locator(".stack").first().innerText(), /^Held the lock .*\s+Index\./, "a hold tells its own");
  assert.match(await page.locator(".legend").innerText(), /stack taken while a thread waited/);
  await page.close();
});

test("a trace without stacks has none of it", async () => {
  const page = await open(browser, report("web"));
  assert.equal(await section(page).count() + (await page.locator(".stack").count()), 0);
  assert.doesNotMatch(await page.locator(".legend").innerText(), /stack/);
  await page.close();
});

test("a page of two recordings has the code of each, which stays as it was left", async () => {
  const page = await open(browser, comparison("web", "stacks"));
  assert.equal(await box(page, "all").count(), 1);
  await box(page, "Index.build").click();
  await page.getByRole("button", { name: "Before: web.offlock" }).click();
  assert.equal(await section(page).count(), 0);
  await page.getByRole("button", { name: "After: stacks.offlock" }).click();
  assert.equal(await wide(box(page, "Index.build")), await wide(box(page, "all")));
  assert.deepEqual(page.problems, []);
  await page.close();
});

test("a comparison says behind which functions others wait longer", async () => {
  const page = await open(browser, comparison("hostile", "stacks"));
  const changes = page.locator(".compared .table", { hasText: "How long others waited behind a function" });
  const most = seconds(lost(summary("stacks"), "Index.tokenize"));
  assert.match(await changes.locator("tbody tr").first().innerText(), new RegExp(`^Index.tokenize\\s+0 ns\\s+${most}\\s.*worse\\s+/srv/app/index.py$`));
  assert.match(await changes.locator("tbody tr").last().innerText(), /0 ns.*better/);
  assert.deepEqual(page.problems, []);
  await page.close();
});

test("the timeline names the function below the pointer", async () => {
  const page = await open(browser, report("stacks"));
  await page.locator("section:has(> h2:text-is('Longest waits')) .link").first().click();
  await page.locator(".chip").first().click();
  await page.keyboard.press("f");
  const canvas = page.locator("canvas.rows");
  await canvas.scrollIntoViewIfNeeded();
  const { x, y, width } = await canvas.boundingBox();
  // The rows: main, the pool of eight workers with a row of its own, the indexer.
  await page.mouse.move(x + 184 + (width - 184) / 2, y + 10 * 24 + 12);
  await page.locator(".tooltip:not([hidden])").first().waitFor();
  assert.match(await page.locator(".tooltip:not([hidden])").innerText(), /^indexer\n.*running for 10\.0 ms\n.*\nIndex.\w+\n\/srv\/app\/index.py:\d+\nWaiting meanwhile/);
  await page.close();
});

test("the flame graph fits a phone", async () => {
  const page = await open(browser, report("stacks"), { viewport: { width: 380, height: 800 } });
  await page.locator("section:has(> h2:text-is('Longest waits')) .link").first().click();
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 380);
  assert.ok((await wide(box(page, "all"))) > 320);
  await page.close();
});

test("functions and files may have any name", async () => {
  const page = await open(browser, report("hostile"));
  assert.deepEqual(page.problems, []);
  assert.ok((await section(page).locator(".box").count()) > 2);
  await section(page).locator(".box").nth(1).hover();
  assert.equal(await page.evaluate(() => window.owned), undefined);
  assert.equal(await page.locator("img").count(), 0);
  assert.match(await section(page).locator(".tooltip").innerText(), /^<\/script><script>window.owned=1/);
  await page.close();
});
