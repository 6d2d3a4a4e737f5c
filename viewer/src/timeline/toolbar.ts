// The controls above the timeline, and the hints below it.
import { h } from "../dom";
import { clean } from "../format";
import type { Lock } from "../trace";
import type { Order } from "./arrange";
import type { View } from "./view";

const FIND = "Find a thread, operation or mark";

const ORDERS: [Order, string][] = [
  ["appearance", "in order of appearance"],
  ["waiting", "longest waiting first"],
  ["running", "longest running first"],
  ["name", "by name"],
];

export class Toolbar {
  readonly element: HTMLElement;
  private readonly matches = h("span", { class: "matches", role: "status" });
  private readonly search: HTMLInputElement;
  private readonly order: HTMLSelectElement;

  /** `arrange` is called when text or order change, `watch` when another lock is chosen. */
  constructor(view: View, locks: Lock[], arrange: () => void, watch: (lock: Lock) => void) {
    const button = (text: string, label: string, onclick: () => void) =>
      h("button", { type: "button", title: label, "aria-label": label, onclick }, text);
    this.search = h("input", { type: "search", placeholder: FIND, "aria-label": FIND, oninput: arrange });
    this.order = h("select", { "aria-label": "Order of threads", onchange: arrange }, ...ORDERS.map(([value, text]) => h("option", { value }, text)));
    this.element = h(
      "div",
      { class: "toolbar" },
      this.search,
      this.order,
      locks.length > 1 ? lockChoice(locks, watch) : null,
      this.matches,
      h(
        "span",
        { class: "buttons" },
        button("−", "Zoom out (-)", () => view.zoom(2)),
        button("+", "Zoom in (+)", () => view.zoom(0.5)),
        button("All", "Show everything (0)", () => view.show(0, view.length)),
      ),
    );
  }

  /** What the threads shown are to contain. */
  get text(): string {
    return this.search.value.trim().toLowerCase();
  }

  get chosenOrder(): Order {
    return this.order.value as Order;
  }

  focus(): void {
    this.search.focus();
  }

  clear(): void {
    this.search.value = "";
  }

  tell(matches: string): void {
    this.matches.textContent = matches;
  }
}

function lockChoice(locks: Lock[], watch: (lock: Lock) => void): HTMLElement {
  const options = locks.map((lock, i) => h("option", { value: i }, clean(lock.name)));
  const onchange = (event: Event) => watch(locks[Number((event.target as HTMLSelectElement).value)]);
  return h("select", { "aria-label": "Lock shown in the charts", onchange }, ...options);
}

export function hints(): HTMLElement {
  const key = (name: string) => h("kbd", {}, name);
  return h(
    "p",
    { class: "hints" },
    "Drag to pan, ", key("Ctrl"), " + wheel or ", key("+"), " ", key("−"), " to zoom, click a state for details. ",
    "Keys: ", key("↑"), key("↓"), " thread, ", key("←"), key("→"), " state, ", key("Enter"), " the thread that held the lock, ",
    key("f"), " zoom to it, ", key("a"), key("d"), " pan, ", key("0"), " everything, ", key("/"), " find.",
  );
}
