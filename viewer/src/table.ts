// Tables whose columns sort, whose rows may open to further rows, and of which long ones are cut until asked for.
import { h } from "./dom";
import { count } from "./format";

const FIRST_ROWS = 100;

export interface Column<T> {
  title: string;
  cell: (row: T) => Node | string;
  /** What to sort by; a column without is not sorted. */
  key?: (row: T) => number | string;
  /** Whether its cells are the rows' titles. */
  heads?: boolean;
  /** Whether its cells are prose. */
  prose?: boolean;
}

export interface Options<T> {
  /** The rows that a row opens to, or none. */
  children?(row: T): T[];
  /** How many rows are shown at first. */
  first?: number;
}

export function table<T>(caption: string, columns: Column<T>[], rows: T[], { children = () => [], first = FIRST_ROWS }: Options<T> = {}): HTMLElement {
  const body = h("tbody");
  const open = new Set<T>();
  let shown = first;
  let by: Column<T> | null = null;
  let down = 1;
  const more = h("button", { type: "button", class: "more", onclick: () => ((shown = Infinity), fill()) }, `Show all ${count(rows.length)}`);
  const inOrder = (some: T[]) => {
    const key = by?.key;
    if (!key) return some;
    return [...some].sort((a, b) => {
      const [x, y] = [key(a), key(b)];
      return (typeof x === "string" ? x.localeCompare(String(y)) : Number(y) - x) * down;
    });
  };
  const opener = (row: T) =>
    h("button", { type: "button", class: "opener", "aria-expanded": open.has(row), "aria-label": "Threads", onclick: () => (open.delete(row) || open.add(row), fill()) }, open.has(row) ? "▾" : "▸");
  const line = (row: T, inner: boolean) =>
    h("tr", inner ? { class: "inner" } : {}, ...columns.map(({ cell, heads, prose }) => h(heads ? "th" : "td", heads ? { scope: "row" } : prose ? { class: "text" } : {}, heads && children(row).length > 0 ? opener(row) : null, cell(row))));
  const fill = () => {
    const focused = [...body.querySelectorAll(".opener")].indexOf(document.activeElement as Element);
    body.replaceChildren(
      ...inOrder(rows)
        .slice(0, shown)
        .flatMap((row) => [line(row, false), ...(open.has(row) ? inOrder(children(row)).map((child) => line(child, true)) : [])]),
    );
    if (focused >= 0) (body.querySelectorAll(".opener")[focused] as HTMLElement | undefined)?.focus();
    more.hidden = rows.length <= shown;
  };
  const sort = (column: Column<T>) => {
    const { key } = column;
    if (!key) return;
    down = by === column ? -down : 1;
    by = column;
    heads.forEach((head, i) => head.setAttribute("aria-sort", columns[i] !== column ? "none" : (typeof key(rows[0]) === "string") === (down === 1) ? "ascending" : "descending"));
    fill();
  };
  const heads = columns.map((column) => h("th", { scope: "col", class: column.prose ? "text" : "" }, column.key ? h("button", { type: "button", onclick: () => sort(column) }, column.title) : column.title));
  fill();
  return h("div", { class: "table", tabindex: 0, role: "region", "aria-label": caption }, h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, ...heads)), body), more);
}
