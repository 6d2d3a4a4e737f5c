// Colours come from the style sheet, so that light, dark and print are decided in one place.

export interface Theme {
  text: string;
  muted: string;
  faint: string;
  line: string;
  panel: string;
  accent: string;
  mark: string;
  states: string[];
}

const names = ["running", "waiting", "idle", "sleep", "off-lock", "gc"];

export function theme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const value = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    text: value("text"),
    muted: value("muted"),
    faint: value("faint"),
    line: value("line"),
    panel: value("panel"),
    accent: value("accent"),
    mark: value("mark"),
    states: names.map((name) => value(name)),
  };
}

/** A colour (#rrggbb) as a pixel of a canvas on a little-endian machine. */
export function pixel(color: string): number {
  const rgb = Number.parseInt(color.slice(1), 16);
  return (0xff000000 | ((rgb & 0xff) << 16) | (rgb & 0xff00) | (rgb >> 16)) >>> 0;
}

/** Calls back when colours change: the system's scheme, the button, printing. */
export function onThemeChange(listener: () => void): void {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", listener);
  new MutationObserver(listener).observe(document.documentElement, { attributeFilter: ["data-theme", "data-print"] });
}

/** While the page is printed it is light, whatever the screen. */
export function lightWhilePrinting(): void {
  addEventListener("beforeprint", () => document.documentElement.setAttribute("data-print", ""));
  addEventListener("afterprint", () => document.documentElement.removeAttribute("data-print"));
}

export function toggleTheme(): void {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
}
