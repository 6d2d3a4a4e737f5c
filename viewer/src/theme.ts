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
  const probe = document.body.appendChild(document.createElement("span"));
  const value = (name: string) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const colors = {
    text: value("text"),
    muted: value("muted"),
    faint: value("faint"),
    line: value("line"),
    panel: value("panel"),
    accent: value("accent"),
    mark: value("mark"),
    states: names.map((name) => value(name)),
  };
  probe.remove();
  return colors;
}

/** A colour, rgb(red, green, blue), as a pixel of a canvas on a little-endian machine. */
export function pixel(color: string): number {
  const [red, green, blue] = color.match(/\d+/g)!.map(Number);
  return (0xff000000 | (blue << 16) | (green << 8) | red) >>> 0;
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
