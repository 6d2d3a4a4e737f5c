// The stacks in a page's data and the flame graph made from them, against the summary and a slow recount.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, test } from "node:test";
import { build } from "esbuild";
import { offlock, report, summary, trace } from "./browser.mjs";

/** What some files of the page define. */
async function modules(...files) {
  const lines = files.map((file) => `export * from "./${file}";`).join("\n");
  const resolveDir = fileURLToPath(new URL("../src", import.meta.url));
  const { outputFiles } = await build({ stdin: { contents: lines, resolveDir }, bundle: true, write: false, format: "esm", target: "es2022" });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
}

const { areaUntil, boxesOf, contains, framesOf, load, outermost, sameIn, StackSums, treeOf, unionOf, waitEdges, WAITING } = await modules("series", "trace", "code", "stacks", "flame/tree");

/** The recording in a page. */
async function loaded(kind) {
  const [, data] = /id="offlock-trace-0">([^<]*)</.exec(readFileSync(report(kind), "utf8"));
  return load(data, 0);
}

/** The same numbers each time, below 1. */
function random(seed) {
  let state = seed;
  return () => (state = (state * 16807) % 2147483647) / 2147483647;
}

const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

/** For how long threads other than the holder waited for a lock, and for how long at least one did: step by step. */
function slowly({ threads }, lock, from, to) {
  const waits = threads.flatMap(({ slices }) =>
    Array.from({ length: slices.count }, (_, i) => i)
      .filter((i) => slices.states[i] === WAITING && slices.whats[i] === lock)
      .map((i) => [Math.max(slices.starts[i], from), Math.min(slices.starts[i + 1], to)])
      .filter(([start, end]) => start < end),
  );
  const edges = [...new Set(waits.flat())].sort((a, b) => a - b);
  const held = edges.slice(1).map((end, i) => (waits.some(([start, stop]) => start <= edges[i] && stop >= end) ? end - edges[i] : 0));
  return { lost: sum(waits.map(([start, end]) => end - start)), held: sum(held) };
}

describe("the stacks of a page", () => {
  test("cost others what the summary and the collapsed stacks say", async () => {
    const recording = await loaded("stacks");
    const root = treeOf(new StackSums(recording).between("lost", -Infinity, Infinity));
    assert.equal(root.total, summary("stacks").code.known);
    assert.equal(sum(root.children.map(({ total }) => total)), root.total);
    const collapsed = execFileSync(offlock, ["export", "-f", "collapsed", trace("stacks"), "-o", "-"], { encoding: "utf8" });
    const stacks = collapsed.trim().split("\n").map((line) => /^(.*) (\d+)$/.exec(line).slice(1));
    for (const name of ["Server.handle", "Server.render", "Index.merge", "JSONDecoder.decode", "main"]) {
      const expected = sum(stacks.map(([stack, time]) => (stack.split(";").some((frame) => frame.startsWith(`${name} (`)) ? Number(time) : 0)));
      const found = outermost(root, (node) => node.function?.name === name);
      assert.ok(expected > 0);
      assert.equal(sum(found.map(({ total }) => total)), expected, name);
    }
    for (const { function: name, file, line, lost } of summary("stacks").code.lines) {
      const inner = new StackSums(recording).between("lost", -Infinity, Infinity).filter(([{ function: called, line: at }]) => called.name === name && called.file === file && at === line);
      assert.equal(sum(inner.map(([, time]) => time)), lost, `${name}:${line}`);
    }
  });

  test("are cut to a range, and add up to the same in its parts", async () => {
    const recording = await loaded("stacks");
    const next = random(5);
    const sums = new StackSums(recording);
    const total = (measure, from, to) => sum(sums.between(measure, from, to).map(([, time]) => time));
    for (let i = 0; i < 6; i++) {
      const [from, to] = [next(), next()].map((share) => Math.round(share * recording.end)).sort((a, b) => a - b);
      const expected = { lost: 0, held: 0 };
      for (const { pieces } of recording.threads) {
        for (let piece = 0; piece < pieces.count; piece++) {
          const [start, end] = [Math.max(pieces.starts[piece], from), Math.min(pieces.ends[piece], to)];
          const { lost, held } = slowly(recording, pieces.locks[piece], start, end);
          expected.lost += lost;
          expected.held += held;
        }
      }
      for (const measure of ["lost", "held"]) {
        assert.equal(total(measure, from, to), expected[measure], `${measure} from ${from} to ${to}`);
        const middle = Math.round((from + to) / 2);
        assert.equal(total(measure, from, middle) + total(measure, middle, to), expected[measure]);
      }
    }
  });

  test("are none in a trace without", async () => {
    const { threads } = await loaded("web");
    assert.deepEqual(threads.map(({ pieces, waiting }) => pieces.count + waiting.stacks.length), threads.map(() => 0));
  });
});

test("the union of intervals counts each moment once", () => {
  const next = random(7);
  for (let run = 0; run < 50; run++) {
    const intervals = Array.from({ length: 1 + Math.floor(next() * 12) }, () => Math.floor(next() * 60)).map((start) => [start, start + 1 + Math.floor(next() * 9)]);
    const column = (side) => Float64Array.from(intervals, (each) => each[side]).sort();
    const union = unionOf({ starts: column(0), ends: column(1) });
    for (let time = 0; time < 75; time++) {
      const covered = Array.from({ length: time }, (_, moment) => intervals.some(([start, end]) => start <= moment && moment < end)).filter(Boolean);
      assert.equal(areaUntil(union, time), covered.length);
    }
  }
});

describe("a flame graph", () => {
  const functions = "abcdef".split("").map((name) => ({ name, file: `/srv/${name}.py` }));

  /** Random stacks with common callers, and functions that call themselves. */
  function stacks(next) {
    const frames = [null];
    for (let i = 0; i < 40; i++) {
      const pick = (all) => all[Math.floor(next() * all.length)];
      frames.push({ caller: pick(frames), function: next() < 0.1 ? null : pick(functions), line: 1 + Math.floor(next() * 3) });
    }
    return frames.slice(1).map((stack) => [stack, 1 + Math.floor(next() * 1000)]);
  }

  const walk = (node, act) => {
    act(node);
    for (const child of node.children) walk(child, act);
  };

  test("has the totals of a slow recount", () => {
    const next = random(11);
    for (let run = 0; run < 30; run++) {
      const times = stacks(next);
      const root = treeOf(times);
      assert.equal(root.total, sum(times.map(([, time]) => time)));
      walk(root, (node) => {
        assert.equal(node.total, node.self + sum(node.children.map(({ total }) => total)));
        if (node.parent) assert.equal(sum([...node.lines.values()]), node.total);
        assert.deepEqual(node.children.map(({ total }) => total).sort((a, b) => b - a), node.children.map(({ total }) => total));
      });
      for (const { name, file } of functions) {
        const expected = sum(times.map(([stack, time]) => (framesOf(stack).some((frame) => frame.function?.name === name) ? time : 0)));
        assert.equal(sum(outermost(root, (node) => contains(node, file)).map(({ total }) => total)), expected, name);
      }
    }
  });

  test("has each function within its caller", () => {
    const next = random(13);
    for (let run = 0; run < 30; run++) {
      const root = treeOf(stacks(next));
      let zoomed = root;
      while (zoomed.children.length > 0 && next() < 0.6) zoomed = zoomed.children[Math.floor(next() * zoomed.children.length)];
      const boxes = boxesOf(zoomed, 0.01);
      const at = new Map(boxes.map((box) => [box.node, box]));
      assert.equal(at.size, boxes.length);
      assert.deepEqual([at.get(zoomed).left, at.get(zoomed).width], [0, 1]);
      for (const { node, left, width, row } of boxes) {
        if (!node.parent) continue;
        const around = at.get(node.parent);
        assert.equal(row, around.row + 1);
        assert.ok(left >= around.left - 1e-9 && left + width <= around.left + around.width + 1e-9);
        assert.ok(Math.abs(width - Math.min(1, node.total / zoomed.total)) < 1e-9 && width >= 0.01);
      }
      walk(zoomed, (node) => node.total / zoomed.total >= 0.01 && assert.ok(at.has(node), "wide enough"));
    }
  });

  test("finds the same function in another tree, or its nearest caller there", () => {
    const [a, b, c] = functions;
    const frame = (called, caller = null) => ({ caller, function: called, line: 1 });
    const whole = treeOf([[frame(c, frame(b, frame(a))), 5]]);
    const cut = treeOf([[frame(b, frame(a)), 5]]);
    const innermost = whole.children[0].children[0].children[0];
    assert.equal(sameIn(cut, innermost), cut.children[0].children[0]);
    assert.equal(sameIn(whole, cut.children[0].children[0]), whole.children[0].children[0]);
    assert.equal(sameIn(treeOf([]), innermost).parent, null);
  });
});
