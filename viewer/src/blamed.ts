// The code that others waited for: a flame graph that can be searched, and the lines in a table.
import { h, label } from "./dom";
import { clean, duration, percent } from "./format";
import { FlameGraph } from "./flame/graph";
import { contains, type Node, outermost, treeOf } from "./flame/tree";
import { type Measure, StackSums } from "./stacks";
import { table } from "./table";
import type { Range } from "./timeline/scene";
import type { Timeline } from "./timeline/timeline";
import type { BlamedLine, Trace } from "./trace";

const MEASURES: [Measure, string, string][] = [
  ["lost", "Time others waited", "how long all other threads together waited for the lock meanwhile"],
  ["held", "Time held while others waited", "how long the lock was held while at least one other thread waited for it"],
];

/** The section, if there is something to say. */
export function blamedCode(trace: Trace, timeline: Timeline): HTMLElement | null {
  const { lines } = trace.summary.code;
  const title = h("h2", {}, "Code that others waited for");
  if (lines.length > 0) return h("section", { class: "blamed" }, title, coverage(trace), new Flames(trace, timeline).element, lineTable(trace));
  const obstacle = trace.summary.about.find(([key]) => key === "stacks_obstacle")?.[1];
  return obstacle ? h("section", { class: "blamed" }, title, h("p", { class: "muted" }, "No stacks were recorded: ", h("bdi", {}, clean(obstacle)))) : null;
}

function coverage({ summary }: Trace): HTMLElement {
  const { known, unknown } = summary.code;
  const rest = unknown > 0 ? `, and ${duration(unknown)} (${percent(unknown / (known + unknown))}) behind holds too short for one` : "";
  return h("p", { class: "muted" }, `Threads waited ${duration(known)} behind holds of which there is a stack${rest}.`);
}

/** The flame graph with its controls. */
class Flames {
  readonly element: HTMLElement;
  private readonly sums: StackSums;
  private readonly graph: FlameGraph;
  private readonly matches = h("span", { class: "matches", role: "status" });
  private readonly note = h("p", { class: "muted note" });
  private readonly search: HTMLInputElement;
  private readonly buttons: HTMLElement[];
  private measure: Measure = "lost";
  private range: Range | null = null;
  private root: Node;

  constructor(trace: Trace, timeline: Timeline) {
    this.sums = new StackSums(trace);
    this.range = timeline.state.range;
    this.root = this.tree();
    const find = "Find a function or file";
    this.search = h("input", { type: "search", placeholder: find, "aria-label": find, oninput: () => this.find() });
    this.buttons = MEASURES.map(([measure, name, title]) => h("button", { type: "button", title, onclick: () => this.choose(measure) }, name));
    const out = h("button", { type: "button", hidden: true, title: "Show all functions (Esc)", onclick: () => this.graph.zoomOut() }, "All functions");
    this.graph = new FlameGraph("Flame graph of the code that others waited for. The arrow keys go to other functions, Enter zooms to one, Escape shows all.", this.root, (zoomed) => (out.hidden = !zoomed));
    const toolbar = h("div", { class: "toolbar" }, h("span", { class: "parts", role: "group", "aria-label": "What the widths are" }, ...this.buttons), this.search, this.matches, h("span", { class: "buttons" }, out));
    this.element = h("div", {}, toolbar, this.graph.element, this.note);
    let pending = 0;
    timeline.listen({
      range: (range) => {
        this.range = range;
        clearTimeout(pending);
        pending = window.setTimeout(() => this.show(), 60);
      },
    });
    this.tell();
  }

  private tree(): Node {
    const { from, to } = this.range ?? { from: -Infinity, to: Infinity };
    return treeOf(this.sums.between(this.measure, from, to));
  }

  private choose(measure: Measure): void {
    this.measure = measure;
    this.show();
  }

  private show(): void {
    this.root = this.tree();
    this.graph.show(this.root);
    this.tell();
  }

  private get text(): string {
    return this.search.value.trim().toLowerCase();
  }

  private find(): void {
    this.graph.find(this.text);
    this.tell();
  }

  private tell(): void {
    const { range, root, text, measure } = this;
    const found = outermost(root, (node) => contains(node, text)).reduce((sum, { total }) => sum + total, 0);
    this.matches.textContent = text ? `${duration(found)} (${percent(found / Math.max(root.total, 1))})` : "";
    const [, , meaning] = MEASURES.find(([each]) => each === measure) ?? MEASURES[0];
    this.note.textContent = `Widths are ${meaning}${range ? `, in the ${duration(range.to - range.from)} selected in the timeline` : ""}. Colours are files. A click or Enter zooms to a function, Esc shows all.`;
    this.buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(MEASURES[i][0] === measure)));
  }
}

const MOST_GROUPS = 2;
const FIRST_LINES = 12;

function lineTable(trace: Trace): HTMLElement {
  const { lines, known } = trace.summary.code;
  return table<BlamedLine>(
    "The lines that held the lock, and how long others waited for it meanwhile",
    [
      { title: "function", cell: (line) => label(line.function), key: (line) => line.function, heads: true },
      { title: "lost", cell: ({ lost }) => `${duration(lost)} (${percent(lost / Math.max(known, 1))})`, key: ({ lost }) => lost },
      { title: "longest hold", cell: (line) => duration(line.longest_hold), key: (line) => line.longest_hold },
      { title: "waited", prose: true, cell: (line) => waiters(trace, line) },
      { title: "line", prose: true, cell: ({ file, line }) => label(line > 0 ? `${file}:${line}` : file, 60), key: ({ file, line }) => `${file}:${String(line).padStart(9)}` },
    ],
    lines,
    { first: FIRST_LINES },
  );
}

function waiters({ groups: all }: Trace, { groups }: BlamedLine): HTMLElement {
  const names = groups.slice(0, MOST_GROUPS).flatMap(([group], i) => [i > 0 ? ", " : "", label(all[group].name)]);
  return h("span", {}, ...names, groups.length > MOST_GROUPS ? ` and ${groups.length - MOST_GROUPS} more` : "");
}
