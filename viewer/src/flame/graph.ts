// A flame graph: outermost functions at the top, each as wide as its time; a click zooms to one.
import { h } from "../dom";
import { shortened } from "../format";
import { type Box, boxesOf, contains, type Node, sameIn } from "./tree";
import { nameOf, placeOf, timesOf } from "./words";

const ROW = 20;
/** The narrowest box, and the narrowest one with its name in it, in pixels. */
const NARROWEST = 4;
const NARROWEST_NAMED = 28;
const LONGEST_NAME = 120;
/** In degrees: multiples of it are far from each other. */
const GOLDEN_ANGLE = 137.5;

export class FlameGraph {
  readonly element: HTMLElement;
  private readonly tree: HTMLElement;
  private readonly tooltip = h("div", { class: "tooltip", hidden: true });
  private readonly told = h("p", { class: "told", "aria-hidden": "true" });
  private readonly boxes = new Map<Element, Box>();
  private readonly hues = new Map<string, number>();
  private root: Node;
  private zoomed: Node;
  private current: Node;
  private text = "";

  /** `changed` is called when another function is zoomed to. */
  constructor(
    label: string,
    root: Node,
    private readonly changed: (zoomed: boolean) => void,
  ) {
    this.root = this.zoomed = this.current = root;
    this.tree = h("div", { class: "flames", role: "tree", "aria-label": label });
    this.element = h("div", { class: "flame" }, this.tree, this.tooltip, this.told);
    this.tree.addEventListener("click", ({ target }) => this.with(target, ({ node }) => this.zoom(node)));
    this.tree.addEventListener("keydown", (event) => this.key(event));
    this.tree.addEventListener("focusin", ({ target }) => this.with(target, ({ node }) => this.choose(node)));
    this.tree.addEventListener("pointermove", (event) => this.hover(event));
    this.tree.addEventListener("pointerleave", () => (this.tooltip.hidden = true));
    let width = 0;
    new ResizeObserver(() => {
      if (width === this.tree.clientWidth) return;
      width = this.tree.clientWidth;
      this.draw();
    }).observe(this.tree);
  }

  /** Shows another tree, zoomed to the same function if it is there. */
  show(root: Node): void {
    [this.zoomed, this.current] = [this.zoomed, this.current].map((node) => sameIn(root, node));
    this.root = root;
    this.draw();
    this.changed(this.zoomed !== root);
  }

  /** Sets functions apart whose name or file contains a text, in small letters. */
  find(text: string): void {
    this.text = text;
    this.draw();
  }

  zoomOut(): void {
    this.zoom(this.root);
  }

  private zoom(node: Node): void {
    this.zoomed = this.current = node;
    const focused = this.tree.contains(document.activeElement);
    this.draw();
    if (focused) this.focus();
    this.changed(node !== this.root);
  }

  private choose(node: Node): void {
    this.current = node;
    for (const [element, box] of this.boxes) element.setAttribute("tabindex", box.node === node ? "0" : "-1");
    this.told.replaceChildren(...this.words(node).flatMap((word) => [word, " "]));
  }

  private focus(): void {
    for (const [element, { node }] of this.boxes) if (node === this.current) (element as HTMLElement).focus();
  }

  private with(target: EventTarget | null, act: (box: Box) => void): void {
    const box = target instanceof Element ? this.boxes.get(target.closest(".box") ?? target) : undefined;
    if (box) act(box);
  }

  private draw(): void {
    const width = Math.max(this.tree.clientWidth, 200);
    const boxes = boxesOf(this.zoomed, NARROWEST / width);
    if (!boxes.some(({ node }) => node === this.current)) this.current = this.zoomed;
    this.boxes.clear();
    for (const box of boxes) this.boxes.set(this.elementOf(box, width), box);
    this.tree.style.height = `${(Math.max(...boxes.map(({ row }) => row)) + 1) * ROW}px`;
    this.tree.replaceChildren(...this.boxes.keys());
    this.choose(this.current);
  }

  private elementOf({ node, left, width, row }: Box, whole: number): HTMLElement {
    const found = this.text ? (contains(node, this.text) ? " found" : " other") : "";
    const above = row < pathLength(this.zoomed) ? " above" : "";
    const attributes = { class: `box${node.parent ? "" : " all"}${above}${found}`, role: "treeitem", "aria-level": row + 1, "aria-label": this.sentence(node) };
    const box = h("div", attributes, width * whole > NARROWEST_NAMED ? shortened(nameOf(node), LONGEST_NAME) : null);
    box.style.left = `${left * 100}%`;
    box.style.width = `${width * 100}%`;
    box.style.top = `${row * ROW}px`;
    box.style.setProperty("--hue", String(this.hueOf(node)));
    return box;
  }

  /** Functions of a file have a colour in common. Those of the next file are far from it on the colour wheel. */
  private hueOf({ function: called }: Node): number {
    const file = called?.file ?? "";
    const known = this.hues.get(file) ?? (30 + this.hues.size * GOLDEN_ANGLE) % 360;
    this.hues.set(file, known);
    return Math.round(known);
  }

  private words(node: Node): HTMLElement[] {
    const place = placeOf(node);
    return [h("b", {}, h("bdi", {}, nameOf(node))), h("span", {}, timesOf(node, this.root.total)), ...(place ? [h("span", { class: "muted" }, h("bdi", {}, place))] : [])];
  }

  private sentence(node: Node): string {
    return [nameOf(node), timesOf(node, this.root.total), placeOf(node)].filter(Boolean).join(", ");
  }

  private hover({ target, clientX, clientY }: PointerEvent): void {
    this.tooltip.hidden = true;
    this.with(target, ({ node }) => {
      const { left, top, width } = this.element.getBoundingClientRect();
      const right = clientX - left > width / 2;
      this.tooltip.hidden = false;
      this.tooltip.replaceChildren(...this.words(node).map((word) => h("div", {}, word)));
      this.tooltip.style.left = right ? "" : `${clientX - left + 14}px`;
      this.tooltip.style.right = right ? `${left + width - clientX + 14}px` : "";
      this.tooltip.style.top = `${clientY - top + 18}px`;
    });
  }

  /** What the keys of the timeline do they do elsewhere. */
  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const go = (node: Node | undefined | null) => {
      if (!node || ![...this.boxes.values()].some((box) => box.node === node)) return;
      this.choose(node);
      this.focus();
    };
    const { current } = this;
    const siblings = current.parent?.children ?? [];
    const at = siblings.indexOf(current);
    const acts: Record<string, () => void> = {
      ArrowUp: () => go(current.parent),
      ArrowDown: () => go(this.below(current)),
      ArrowLeft: () => go(siblings[at - 1]),
      ArrowRight: () => go(siblings[at + 1]),
      Home: () => go(this.root),
      Enter: () => this.zoom(current),
      " ": () => this.zoom(current),
      Backspace: () => this.zoom(this.zoomed.parent ?? this.root),
      Escape: () => this.zoomOut(),
    };
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  }

  /** Of what is above the function that is zoomed to only that is shown which leads to it. */
  private below(node: Node): Node | undefined {
    const shown = [...this.boxes.values()].map((box) => box.node);
    return node.children.find((child) => shown.includes(child));
  }
}

function pathLength(node: Node): number {
  let length = 0;
  for (let each = node.parent; each; each = each.parent) length++;
  return length;
}
