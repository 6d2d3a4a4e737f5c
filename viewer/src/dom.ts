// Elements without markup: texts from the traced program never become HTML.
import { clean, shortened } from "./format";

type Child = Node | string | null | undefined;
type Attributes = Record<string, string | number | boolean | ((event: any) => void)>;

/** An element with attributes, listeners (`onclick` …) and children; texts become text nodes. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false) element.setAttribute(name, String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

/** An SVG element. */
export function s(tag: string, attributes: Record<string, string | number> = {}, ...children: (Node | string)[]): SVGElement {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** A text in which `back-quoted` names are set apart. */
export function prose(text: string): Node[] {
  return text.split("`").map((part, i) => (i % 2 === 1 ? h("b", { class: "name" }, h("bdi", {}, part)) : document.createTextNode(part)));
}

const LONGEST_NAME = 40;

/** A name from the traced program, with the whole of it in the title if it is cut. */
export function label(name: string, most = LONGEST_NAME): HTMLElement {
  const whole = clean(name);
  return h("bdi", whole.length > most ? { title: whole } : {}, shortened(whole, most));
}
