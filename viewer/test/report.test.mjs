import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { comparison, launch, open, processes, report, summary } from "./browser.mjs";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

const details = (page) => page.locator(".details").last().innerText();
const rows = (page) => page.locator("canvas.rows");

/** Where an element is, once it is in the window: the mouse does not reach what is below. */
async function visibleBox(element) {
  await element.scrollIntoViewIfNeeded();
  return element.boundingBox();
}

async function focus(page) {
  await rows(page).focus();
  return page.keyboard;
}

/** Waits until what was changed is drawn, which is in the next frame. */
const drawn = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done()))));

/** A colour of the style sheet in the present theme: red, green and blue. */
const bytes = (page, color) =>
  page.evaluate((color) => {
    const probe = document.body.appendChild(document.createElement("span"));
    probe.style.color = `var(${color})`;
    const values = getComputedStyle(probe).color.match(/\d+/g).map(Number);
    probe.remove();
    return values;
  }, color);

/** How much of the visible timeline has about this colour. */
async function share(page, color) {
  await drawn(page);
  return page.evaluate((wanted) => {
    const canvas = document.querySelector("canvas.rows");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let same = 0;
    for (let i = 0; i < data.length; i += 4) if (wanted.every((byte, j) => Math.abs(byte - data[i + j]) < 3)) same++;
    return same / (data.length / 4);
  }, await bytes(page, color));
}

describe("a report", () => {
  test("needs nothing but itself and has no problems", async () => {
    const page = await open(browser, report("web"));
    assert.deepEqual(page.problems, []);
    assert.equal(page.requests.length, 1);
    assert.ok(page.requests[0].startsWith("file://"));
    assert.equal(await page.title(), "simulated – offlock");
    await page.close();
  });

  test("says what the summary says", async () => {
    const page = await open(browser, report("web"));
    const expected = summary("web");
    const plain = (text) => text.replaceAll("`", "");
    const [verdict, ...others] = expected.findings;
    const [sentence, figures] = plain(verdict.text).split(": ");
    assert.equal(await page.locator(".verdict h2").innerText(), `${sentence}.`);
    assert.equal((await page.locator(".verdict .figures").innerText()).toLowerCase(), figures.toLowerCase());
    const findings = await page.locator(".findings li p:not(.advice)").allInnerTexts();
    assert.deepEqual(findings, others.map(({ text }) => plain(text)));
    const named = ({ name, threads }) => (threads.length > 1 ? `▸${name} ×${threads.length}` : name);
    const names = await page.locator("section:has(> h2:text-is('Threads')) tbody th").allInnerTexts();
    assert.deepEqual(names, expected.groups.map(named));
    const last20 = page.locator("section:has(> h2:text-is('Longest waits')) tbody tr");
    assert.equal(await last20.count(), 20);
    assert.equal(await last20.first().locator("th").innerText(), `${(expected.contended.max / 1e6).toFixed(1)} ms`);
    const last = page.locator("table.blame thead th").last();
    assert.equal(await last.innerText(), "no thread (being handed over)");
    assert.ok(await last.evaluate((title) => title.scrollWidth <= title.clientWidth), "the title is cut");
    await page.close();
  });

  test("draws every state in its colour", async () => {
    const page = await open(browser, report("web"));
    for (const state of ["running", "waiting", "idle", "sleep", "off-lock", "gc"]) {
      assert.ok((await share(page, `--${state}`)) > 0.0005, state);
    }
    await page.close();
  });

  test("leads from a waiting thread to the one that held the lock", async () => {
    const page = await open(browser, report("convoy"));
    const keyboard = await focus(page);
    await keyboard.press("ArrowDown");
    let text = await details(page);
    for (let i = 0; i < 10 && !text.includes("waiting"); i++) {
      await keyboard.press("ArrowRight");
      text = await details(page);
    }
    assert.match(text, /^net +waiting for \d/);
    assert.match(text, /held meanwhile by\s+counter/);
    await keyboard.press("Enter");
    assert.match(await details(page), /^counter +running for/);
    assert.match(await details(page), /Waiting behind it meanwhile\s+net/);
    await page.locator(".chip").first().click();
    assert.match(await details(page), /^net +waiting for/);
    await page.close();
  });

  test("blames groups as the summary blames their threads", async () => {
    const page = await open(browser, report("web"));
    const { groups, locks } = summary("web");
    const groupOf = (thread) => groups.findIndex(({ threads }) => threads.includes(thread));
    const puma = groups.findIndex(({ name }) => name === "puma worker *");
    const indexer = groups.findIndex(({ name }) => name === "indexer");
    const rows = locks[0].blame.filter(({ thread }) => groupOf(thread) === puma);
    const waited = rows.reduce((sum, row) => sum + row.waited, 0);
    const behind = rows.flatMap(({ by }) => by).reduce((sum, [thread, time]) => sum + (groupOf(thread) === indexer ? time : 0), 0);
    const row = page.locator("table.blame tbody tr").first();
    assert.match(await row.locator("th").innerText(), /puma worker \* ×8/);
    const column = (await page.locator("table.blame thead th").allInnerTexts()).indexOf("indexer");
    assert.equal(await row.locator("td").nth(column).innerText(), `${((100 * behind) / waited).toFixed(0)}%`);
    await row.locator(".opener").click();
    assert.equal(await page.locator("table.blame tr.inner").count(), 8);
    await page.close();
  });

  test("goes to a wait from the table of the longest ones", async () => {
    const page = await open(browser, report("web"));
    const first = page.locator("section:has(> h2:text-is('Longest waits')) tbody tr").first();
    const [length, thread] = (await first.innerText()).split(/\t|\n/).map((text) => text.trim()).filter(Boolean);
    await first.locator("button").click();
    assert.ok((await details(page)).replace(/\s+/g, " ").startsWith(`${thread} waiting for ${length}`), await details(page));
    await page.close();
  });

  test("opens and closes pools in the timeline and in the table", async () => {
    const page = await open(browser, report("server"));
    const tall = async () => {
      await drawn(page);
      return page.locator(".scroller").evaluate(({ scrollHeight }) => scrollHeight);
    };
    const closed = await tall();
    await page.getByRole("button", { name: "Open pools" }).click();
    const opened = await tall();
    assert.ok(opened > closed + 40 * 20, `${closed}, then ${opened}`);
    await page.getByRole("button", { name: "Close pools" }).click();
    assert.equal(await tall(), closed);
    const box = await visibleBox(rows(page));
    await page.mouse.click(box.x + 30, box.y + 24 + 20);
    assert.ok((await tall()) > closed, "a click on the name of a pool");
    const threads = page.locator("section:has(> h2:text-is('Threads'))");
    await threads.locator("tr", { hasText: "process_request_thread" }).locator(".opener").click();
    assert.equal(await threads.locator("tr.inner").count(), 40);
    await page.close();
  });

  test("shows marks as bars that tell what happened in them", async () => {
    const page = await open(browser, report("server"));
    assert.match(await page.locator(".by-mark li").first().innerText(), /^\d+%\s*GET \/report in puma srv tp \*/);
    await page.getByRole("button", { name: "Open pools" }).click();
    await page.getByRole("searchbox").fill("render");
    assert.ok((await share(page, "--mark")) > 0.0001, "bars");
    const longest = page.locator("section:has(> h2:text-is('Marks')) tbody tr").first();
    assert.match(await longest.innerText(), /GET \/report/);
    // A moment in a report: the thread with the longest hold is in one.
    await page.locator("section:has(> h2:text-is('Threads')) tbody tr", { hasText: "puma" }).locator(".link").click();
    assert.match(await details(page), /in GET \/report/);
    await page.locator("body").press("f");
    // Below the row of the pool each thread has a row of 24 pixels and two lanes of 13; the first lane is of requests.
    const [, number] = /^puma srv tp 00(\d)/.exec(await details(page));
    const box = await visibleBox(rows(page));
    await page.mouse.click(box.x + box.width * 0.6, box.y + 24 + (number - 1) * 50 + 30);
    const told = await details(page);
    assert.match(told, /^GET \/report in puma srv tp 00\d took \d/);
    assert.match(told, /others waited \d/);
    await page.close();
  });

  test("sums up a range that is drawn with the mouse", async () => {
    const page = await open(browser, report("web"));
    const box = await visibleBox(rows(page));
    await page.mouse.move(box.x + 500, box.y + 12);
    await page.mouse.down();
    await page.mouse.move(box.x + 700, box.y + 20, { steps: 4 });
    await page.mouse.up();
    const sums = page.locator(".ranged");
    await sums.locator("table").waitFor();
    assert.match(await sums.innerText(), /selected, from \d/);
    const all = sums.locator("tbody tr").first();
    assert.match(await all.innerText(), /^all\s/);
    await page.keyboard.press("Escape");
    await sums.locator("table").waitFor({ state: "detached" });
    await page.keyboard.press("r");
    await sums.locator("table").waitFor();
    const { times, contended } = summary("web");
    const running = `${(times.running / 1e9).toFixed(2)} s`;
    assert.ok((await all.innerText()).includes(running), `all of the recording: ${running}`);
    assert.ok((await all.innerText()).includes(String(contended.count)));
    await page.close();
  });

  test("takes keys wherever the focus is, but in a field", async () => {
    const page = await open(browser, report("convoy"));
    await page.keyboard.press("ArrowRight");
    assert.match(await details(page), /^net +/);
    await page.keyboard.press("Escape");
    await page.keyboard.press("/");
    await page.keyboard.type("jnet?");
    assert.equal(await page.getByRole("searchbox").inputValue(), "jnet?");
    assert.match(await details(page), /^Select a state/);
    assert.equal(await page.locator("dialog[open]").count(), 0);
    await page.locator("h1").click();
    await page.keyboard.press("?");
    assert.match(await page.locator("dialog[open]").innerText(), /zoom in/);
    await page.keyboard.press("Escape");
    assert.equal(await page.locator("dialog[open]").count(), 0);
    await page.close();
  });

  test("says what threads wait for where there is no lock", async () => {
    const page = await open(browser, report("free-threaded"));
    assert.deepEqual(page.problems, []);
    assert.match(await page.locator(".verdict h2").innerText(), /^Waiting in the interpreter, which has no lock, slows this program down/);
    assert.match(await page.locator(".legend").innerText(), /running has stopped others\s+waiting waits for another thread, in the interpreter/);
    await page.locator("section:has(> h2:text-is('Longest waits')) tbody button").first().click();
    assert.match(await details(page), /^worker-\d +waiting for 20\.0 ms[\s\S]*It was stopped by\s+collector/);
    assert.doesNotMatch(await page.locator("body").innerText(), /\bGIL\b|\bGVL\b/);
    await page.close();
  });

  test("keeps view and selection in the address", async () => {
    const page = await open(browser, report("web"));
    const hash = () => page.evaluate(() => location.hash);
    const settle = (pattern) => page.waitForFunction((source) => new RegExp(source).test(location.hash), pattern);
    await page.keyboard.press("ArrowRight");
    await settle("select=");
    const first = [await hash(), await details(page)];
    await page.locator("section:has(> h2:text-is('Longest waits')) .link").first().click();
    await settle("select=0\\.(?!0\\.)");
    const second = [await hash(), await details(page)];
    assert.notEqual(second[1], first[1]);
    await page.goBack();
    assert.deepEqual([await hash(), await details(page)], first);
    await page.goForward();
    assert.deepEqual([await hash(), await details(page)], second);
    const copy = await open(browser, `${report("web")}${second[0]}`);
    assert.equal(await details(copy), second[1]);
    assert.deepEqual(copy.problems, []);
    await copy.goto(`${copy.url().split("#")[0]}#view=9-1&select=7.x&range=a&order=none&find=%`);
    assert.deepEqual(copy.problems, []);
    await copy.close();
    await page.close();
  });

  test("fits a phone", async () => {
    for (const path of [report("server"), comparison("convoy", "web")]) {
      const page = await open(browser, path, { viewport: { width: 390, height: 800 } });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.equal(wide, 390);
      const { width } = await rows(page).boundingBox();
      assert.ok(width > 320, `${width}`);
      await page.close();
    }
  });

  test("hovering and clicking tell about the state under the pointer", async () => {
    const page = await open(browser, report("convoy"));
    const box = await visibleBox(rows(page));
    await page.mouse.move(box.x + box.width * 0.6, box.y + 12);
    await page.locator(".tooltip:not([hidden])").waitFor();
    assert.match(await page.locator(".tooltip").innerText(), /^net\n.*waiting for[\s\S]*Held meanwhile by\ncounter/);
    await page.mouse.click(box.x + box.width * 0.6, box.y + 12);
    assert.match(await details(page), /^net +waiting for/);
    await page.close();
  });

  test("zooms, pans and comes back", async () => {
    const page = await open(browser, report("web"));
    const picture = async () => {
      await drawn(page);
      return (await page.locator("canvas.head").screenshot()).toString("base64");
    };
    const keyboard = await focus(page);
    const whole = await picture();
    await keyboard.press("+");
    const near = await picture();
    assert.notEqual(near, whole);
    await keyboard.press("d");
    assert.notEqual(await picture(), near);
    await keyboard.press("0");
    assert.equal(await picture(), whole);
    const box = await visibleBox(rows(page));
    await page.mouse.move(box.x + 500, box.y + 40);
    await page.keyboard.down("Control");
    await page.mouse.wheel(0, -300);
    await page.keyboard.up("Control");
    assert.notEqual(await picture(), whole);
    await page.close();
  });

  test("shows the same after panning as when painted afresh", async () => {
    const page = await open(browser, report("web"));
    const keyboard = await focus(page);
    // The pixels stay in the page: there are millions of them.
    const keep = async (name) => {
      await drawn(page);
      return page.evaluate((name) => {
        const canvas = document.querySelector("canvas.rows");
        window[name] = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
      }, name);
    };
    await keyboard.press("+");
    await keyboard.press("+");
    const box = await visibleBox(rows(page));
    await page.mouse.move(box.x + 5, box.y + 5);
    for (const step of [40, 7, -90, 21]) {
      await page.mouse.wheel(step, 0);
      await keep("panned");
    }
    await page.locator(".theme").click();
    await page.locator(".theme").click();
    await keep("afresh");
    // The hatching of waiting may lie elsewhere: only its colours may be exchanged.
    const values = [await bytes(page, "--waiting"), await bytes(page, "--panel")];
    const [different, all] = await page.evaluate((values) => {
      const { panned, afresh } = window;
      const waiting = new Set(values.map(([red, green, blue]) => (red << 16) | (green << 8) | blue));
      const color = (data, i) => (data[i] << 16) | (data[i + 1] << 8) | data[i + 2];
      let different = 0;
      for (let i = 0; i < panned.length; i += 4) {
        const [a, b] = [color(panned, i), color(afresh, i)];
        if (a !== b && !(waiting.has(a) && waiting.has(b))) different++;
      }
      return [different, panned.length / 4];
    }, values);
    assert.ok(all > 0 && different < all / 1000, `${different} of ${all} pixels`);
    await page.close();
  });

  test("finds threads and operations by name", async () => {
    const page = await open(browser, report("web"));
    const search = page.getByRole("searchbox");
    await search.fill("puma");
    assert.equal(await page.locator(".matches").innerText(), "8 of 12 threads");
    await search.fill("deflate");
    assert.equal(await page.locator(".matches").innerText(), "2 of 12 threads");
    await search.fill("no such thing");
    assert.equal(await page.locator(".matches").innerText(), "0 of 12 threads");
    await page.close();
  });

  test("tells the timeline as a table", async () => {
    const page = await open(browser, report("convoy"));
    await page.locator(".states summary").click();
    const table = page.locator(".states table");
    await table.waitFor();
    assert.match(await table.locator("tbody tr").nth(1).innerText(), /waiting[\s\S]*counter/);
    await page.locator(".states select").selectOption("0.1");
    assert.match(await table.locator("tbody").innerText(), /running/);
    await page.close();
  });

  test("sorts its tables", async () => {
    const page = await open(browser, report("web"));
    const threads = page.locator("section:has(> h2:text-is('Threads'))");
    await threads.getByRole("button", { name: "waiting", exact: true }).click();
    assert.equal(await threads.locator("tbody th").first().innerText(), "indexer");
    assert.equal(await threads.locator("th[aria-sort='descending']").count(), 1);
    await page.close();
  });

  test("runs nothing that a name smuggles in", async () => {
    const page = await open(browser, report("hostile"));
    assert.deepEqual(page.problems, []);
    assert.equal(await page.evaluate(() => window.owned), undefined);
    assert.equal(await page.locator("img").count(), 0);
    assert.equal(await page.locator("script:not([type='text/plain'])").count(), 1);
    const names = await page.locator("section:has(> h2:text-is('Threads')) tbody th").allInnerTexts();
    assert.match(names.find((name) => name.includes("script")), /^<\/script><script>win.*…/, "cut in the middle");
    const whole = await page.locator("bdi[title]").first().getAttribute("title");
    assert.equal(whole, "</script><script>window.owned=1</script><img src=x onerror=window.owned=1>");
    assert.ok(!names.join("").includes("\u202e"));
    await page.evaluate(() => {
      const script = document.createElement("script");
      script.textContent = "window.owned = 2";
      document.body.append(script);
    });
    assert.equal(await page.evaluate(() => window.owned), undefined, "the page's own policy forbids other scripts");
    await page.close();
  });

  test("is light, dark and light again on paper", async () => {
    const page = await open(browser, report("web"), { colorScheme: "dark" });
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const dark = await background();
    await page.locator(".theme").click();
    const light = await background();
    assert.notEqual(light, dark);
    await page.locator(".theme").click();
    assert.equal(await background(), dark);
    await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
    assert.equal(await background(), light);
    await page.evaluate(() => dispatchEvent(new Event("afterprint")));
    assert.equal(await background(), dark);
    assert.ok((await page.pdf({ landscape: true })).length > 10_000);
    await page.close();
  });
});

test("a million events of a hundred threads fit into six megabytes", async () => {
  const path = report("million");
  assert.ok(statSync(path).size < 6e6);
  const page = await open(browser, path);
  assert.deepEqual(page.problems, []);
  assert.ok((await share(page, "--running")) > 0.005);
  const keyboard = await focus(page);
  for (const key of ["ArrowDown", "ArrowRight", "f", "d", "a", "0"]) await keyboard.press(key);
  assert.match(await details(page), /^worker 0 +\S+ for/);
  await page.close();
});

test("a comparison shows both reports and what changed", async () => {
  const page = await open(browser, comparison("convoy", "web"));
  assert.deepEqual(page.problems, []);
  assert.equal(await page.locator("canvas.rows").count(), 1, "both on one axis");
  const change = page.locator("table.compare").first().locator("tr", { hasText: "wait p99" });
  assert.match(await change.innerText(), /99\.0 ms\s+20\.2 ms\s+1\/4\.9 as much, better/);
  assert.match(await page.locator(".verdict h2").first().innerText(), /^Threads waited for the lock /);
  const groups = await page.locator("table.pairs tbody th").allInnerTexts();
  assert.deepEqual(groups.sort(), ["counter", "indexer", "main", "net", "puma worker *", "reporter *"]);
  await page.getByRole("button", { name: "Before: convoy.offlock" }).click();
  assert.match(await page.locator("section:has(> h2:text-is('Threads')) tbody").innerText(), /counter/);
  await page.close();
});

test("recordings of one process are not called processes", async () => {
  const page = await open(browser, processes("web", "server"));
  assert.deepEqual(page.problems, []);
  assert.match(await page.locator("header p").innerText(), /^2 recordings of one run/);
  assert.match(await page.locator(".verdict").first().innerText(), /which lost most of 2 recordings/);
  assert.equal(await page.locator("section:has(> h2:text-is('Recordings')) tbody th button").count(), 2);
  await page.close();
});

test("the processes of a run are on one axis, and the one that lost most leads", async () => {
  const page = await open(browser, processes("convoy", "web"));
  assert.deepEqual(page.problems, []);
  assert.equal(await rows(page).count(), 1, "all on one axis");
  const buttons = page.locator("section:has(> h2:text-is('Processes')) tbody th button");
  assert.equal(await buttons.count(), 2);
  const threads = page.locator("section:has(> h2:text-is('Threads')) tbody");
  const lost = ({ groups }) => groups.reduce((sum, { times }) => sum + times.waiting, 0);
  const worstFirst = [summary("convoy"), summary("web")].sort((a, b) => lost(b) - lost(a));
  for (const [index, { groups }] of [...worstFirst.entries()].reverse()) {
    await buttons.nth(index).click();
    assert.ok((await threads.innerText()).includes(groups[0].name), groups[0].name);
  }
  await page.close();
});
