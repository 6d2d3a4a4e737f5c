// The controls above the timeline.
import { h } from "../dom";
import { clean } from "../format";
import type { Lock } from "../trace";
import type { Order } from "./arrange";

const FIND = "Find a thread, operation or mark";

const ORDERS: [Order, string][] = [
  ["appearance", "in order of appearance"],
  ["waiting", "longest waiting first"],
  ["running", "longest running first"],
  ["name", "by name"],
];

export interface Commands {
  /** Text or order have changed. */
  arrange(): void;
  watch(lock: Lock): void;
  zoom(factor: number): void;
  showAll(): void;
  /** Opens or closes all pools. */
  togglePools(): void;
  help(): void;
}

export class Toolbar {
  readonly element: HTMLElement;
  private readonly matches = h("span", { class: "matches", role: "status" });
  private readonly search: HTMLInputElement;
  private readonly orders: HTMLSelectElement;
  private readonly pools: HTMLButtonElement;

  /** Several `locks` can be chosen from. */
  constructor(locks: Lock[], { arrange, watch, zoom, showAll, togglePools, help }: Commands) {
    const button = (text: string, label: string, onclick: () => void) => h("button", { type: "button", title: label, "aria-label": label, onclick }, text);
    this.search = h("input", { type: "search", placeholder: FIND, "aria-label": FIND, oninput: arrange });
    this.orders = h("select", { "aria-label": "Order of threads", onchange: arrange }, ...ORDERS.map(([value, text]) => h("option", { value }, text)));
    this.pools = h("button", { type: "button", onclick: togglePools });
    this.element = h(
      "div",
      { class: "toolbar" },
      this.search,
      this.orders,
      locks.length > 1 ? lockChoice(locks, watch) : null,
      this.pools,
      this.matches,
      h(
        "span",
        { class: "buttons" },
        button("−", "Zoom out (-)", () => zoom(2)),
        button("+", "Zoom in (+)", () => zoom(0.5)),
        button("All", "Show everything (0)", showAll),
        button("?", "Help (?)", help),
      ),
    );
  }

  /** What the threads shown are to contain. */
  get text(): string {
    return this.search.value.trim().toLowerCase();
  }

  set text(text: string) {
    this.search.value = text;
  }

  get order(): Order {
    return this.orders.value as Order;
  }

  set order(order: string) {
    this.orders.value = order;
    if (this.orders.selectedIndex < 0) this.orders.selectedIndex = 0;
  }

  focus(): void {
    this.search.focus();
  }

  tell(matches: string): void {
    this.matches.textContent = matches;
  }

  /** Whether there are pools, and what the button does to them. */
  offerPools(some: boolean, open: boolean): void {
    this.pools.hidden = !some;
    this.pools.textContent = open ? "Close pools" : "Open pools";
  }
}

function lockChoice(locks: Lock[], watch: (lock: Lock) => void): HTMLElement {
  const options = locks.map((lock, i) => h("option", { value: i }, clean(lock.name)));
  const onchange = (event: Event) => watch(locks[Number((event.target as HTMLSelectElement).value)]);
  return h("select", { "aria-label": "Lock shown in the charts", onchange }, ...options);
}
