// Stacks with times as a tree of functions, the outermost at the root: a flame graph without its picture.
import { type CodeFunction, type Frame, framesOf } from "../code";

export interface Node {
  parent: Node | null;
  /** Null for the root, and for frames that were left out. */
  function: CodeFunction | null;
  /** The time with this function called in this way. */
  total: number;
  /** The part of it in the function itself. */
  self: number;
  /** The time by the line that it executes. */
  lines: Map<number, number>;
  /** The largest first. */
  children: Node[];
}

/** Lines of a function are one node. The root is no function: its total is all time. */
export function treeOf(times: Iterable<[stack: Frame, time: number]>): Node {
  const root = nodeOf(null, null);
  for (const [stack, time] of times) {
    let node = root;
    root.total += time;
    for (const frame of framesOf(stack).reverse()) {
      node = childOf(node, frame.function);
      node.total += time;
      node.lines.set(frame.line, (node.lines.get(frame.line) ?? 0) + time);
    }
    node.self += time;
  }
  sort(root);
  return root;
}

function nodeOf(parent: Node | null, called: CodeFunction | null): Node {
  return { parent, function: called, total: 0, self: 0, lines: new Map(), children: [] };
}

/** Functions of the same name and file are one: a program may make the same one again and again. */
function childOf(node: Node, called: CodeFunction | null): Node {
  const same = (other: CodeFunction | null) => other === called || (other !== null && other.name === called?.name && other.file === called.file);
  const known = node.children.find((child) => same(child.function));
  if (known) return known;
  const child = nodeOf(node, called);
  node.children.push(child);
  return child;
}

function sort({ children }: Node): void {
  children.sort((a, b) => b.total - a.total);
  children.forEach(sort);
}

/** The nodes from the root to this one. */
export function pathTo(node: Node): Node[] {
  return node.parent ? [...pathTo(node.parent), node] : [node];
}

/** The outermost nodes that match, so that the time of one within another counts once. */
export function outermost(node: Node, matches: (node: Node) => boolean): Node[] {
  return matches(node) ? [node] : node.children.flatMap((child) => outermost(child, matches));
}

/** Whether a text, in small letters, occurs in the function's name or file. */
export function contains({ function: called }: Node, text: string): boolean {
  return called !== null && (called.name.toLowerCase().includes(text) || called.file.toLowerCase().includes(text));
}

/** A node in the picture: from where to where, as parts of the whole width, and in which row. */
export interface Box {
  node: Node;
  left: number;
  width: number;
  row: number;
}

/** The nodes above and below one that takes the whole width, as far as they are wide enough. */
export function boxesOf(zoomed: Node, narrowest: number): Box[] {
  const boxes: Box[] = pathTo(zoomed).map((node, row) => ({ node, left: 0, width: 1, row }));
  const add = (parent: Node, from: number, row: number) => {
    let left = from;
    for (const node of parent.children) {
      const width = node.total / zoomed.total;
      if (width < narrowest) return;
      boxes.push({ node, left, width, row });
      add(node, left, row + 1);
      left += width;
    }
  };
  add(zoomed, 0, boxes.length);
  return boxes;
}

/** Where the same functions are in another tree, as deep as they are there. */
export function sameIn(root: Node, node: Node): Node {
  if (!node.parent) return root;
  const parent = sameIn(root, node.parent);
  const { name, file } = node.function ?? {};
  return parent.children.find(({ function: other }) => other?.name === name && other?.file === file) ?? parent;
}
