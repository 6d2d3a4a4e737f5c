// The keys of the timeline, wherever the focus is, and the overlay that lists them.
import { h } from "../dom";

export interface Key {
  /** Values of `KeyboardEvent.key`. */
  keys: string[];
  /** How they are written in the list. */
  shown: string[];
  does: string;
  act: () => void;
  /** Whether the page needs the key, too, so that the timeline takes it only while a state is selected or it has the focus. */
  shared?: boolean;
}

const FIELDS = "input, select, textarea, [contenteditable]";
const CONTROLS = `${FIELDS}, button, a, summary, [tabindex]`;

/** Listens everywhere. `isBusy` says whether the timeline has something selected. */
export function listenToKeys(canvas: HTMLElement, keys: Key[], isBusy: () => boolean): void {
  document.addEventListener("keydown", (event) => {
    const target = event.target instanceof Element ? event.target : document.body;
    if (event.ctrlKey || event.metaKey || event.altKey || target.closest(`${FIELDS}, dialog`)) return;
    const key = keys.find((each) => each.keys.includes(event.key));
    if (!key) return;
    const focused = target === canvas;
    if (key.shared && !focused && (!isBusy() || target.closest(CONTROLS))) return;
    event.preventDefault();
    key.act();
  });
}

const POINTER: [string[], string][] = [
  [["Click"], "select a state or a mark; on a name, open or close a pool"],
  [["Drag"], "select a range and see its sums"],
  [["Ctrl", "wheel"], "zoom, like two fingers"],
  [["Shift", "drag"], "pan, like the wheel sideways or one finger"],
];

/** The overlay; it is shown with `showModal`. */
export function helpFor(keys: Key[]): HTMLDialogElement {
  const line = ([names, does]: [string[], string]) => [
    h("dt", {}, ...names.flatMap((name, i) => [i > 0 ? " " : null, h("kbd", {}, name)])),
    h("dd", {}, does),
  ];
  const dialog = h(
    "dialog",
    { class: "help", "aria-label": "Help for the timeline" },
    h("h2", {}, "In the timeline"),
    h("dl", {}, ...POINTER.flatMap(line), ...keys.map(({ shown, does }): [string[], string] => [shown, does]).flatMap(line)),
    h("form", { method: "dialog" }, h("button", {}, "Close")),
  );
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  return dialog;
}
