// Puts the report together.
import { fromBase64 } from "./bytes";
import { comparison, type Comparison } from "./compare";
import { details } from "./details";
import { h } from "./dom";
import { clean } from "./format";
import { histogram } from "./histogram";
import { about, cards, findings } from "./overview";
import { blameMatrix, spanTable, stateTable, threadTable } from "./tables";
import { lightWhilePrinting, toggleTheme } from "./theme";
import { swatch } from "./swatch";
import { Timeline } from "./timeline/timeline";
import { load, STATES, type Trace } from "./trace";

const MEANINGS = ["holds the lock", "wants the lock", "is blocked on something else", "sleeps", "computes without the lock", "collects garbage with the lock"];

function section(title: string, ...content: (Node | string | null)[]): HTMLElement {
  return h("section", {}, h("h2", {}, title), ...content);
}

function legend(): HTMLElement {
  return h("ul", { class: "legend" }, ...STATES.map((name, state) => h("li", {}, swatch(state), ` ${name}`, h("span", { class: "muted" }, ` ${MEANINGS[state]}`))));
}

function later(work: () => void): void {
  requestAnimationFrame(() => setTimeout(work));
}

/** The report on one trace: the numbers and the timeline at once, the rest when they are on the screen. */
function report(trace: Trace): HTMLElement {
  const timeline = new Timeline(trace);
  const rest = h("div");
  addEventListener("beforeprint", () => timeline.draw());
  later(() => {
    timeline.watch(trace.locks[0]);
    rest.append(...further(trace, timeline));
    performance.mark("offlock-complete");
  });
  return h(
    "article",
    {},
    cards(trace),
    section("Findings", findings(trace.summary.findings)),
    section("Timeline", legend(), timeline.element, details(trace, timeline), stateTable(trace, timeline)),
    rest,
  );
}

function further(trace: Trace, timeline: Timeline): HTMLElement[] {
  const { operations, marks } = trace.summary;
  return [
    section("How long threads waited", histogram(trace)),
    ...trace.locks.filter((lock) => lock.summary.blame.length > 0).map((lock) => section(`Which threads held the lock while others waited: ${clean(lock.name)}`, blameMatrix(trace, lock.summary))),
    section("Threads", threadTable(trace, timeline)),
    ...(operations.length > 0 ? [section("Operations off the lock", spanTable("What threads did during operations", operations))] : []),
    ...(marks.length > 0 ? [section("Marks", spanTable("What threads did during marks", marks))] : []),
  ];
}

function header(title: string, subtitle: string): HTMLElement {
  document.title = `${title} – offlock`;
  return h(
    "header",
    {},
    h("div", {}, h("h1", {}, h("bdi", {}, title)), h("p", { class: "muted" }, subtitle)),
    h("button", { type: "button", class: "theme", title: "Light or dark", "aria-label": "Switch between light and dark", onclick: toggleTheme }, "◐"),
  );
}

async function data(): Promise<{ traces: Trace[]; compared: Comparison | null }> {
  const text = (id: string) => document.getElementById(id)?.textContent ?? null;
  const packed = ["offlock-trace-0", "offlock-trace-1"].map(text).filter((base64) => base64 !== null);
  const compared = text("offlock-comparison");
  return { traces: await Promise.all(packed.map(load)), compared: compared ? JSON.parse(new TextDecoder().decode(fromBase64(compared))) : null };
}

async function main(): Promise<void> {
  const root = document.getElementById("report") as HTMLElement;
  try {
    const { traces, compared } = await data();
    lightWhilePrinting();
    if (compared && traces.length === 2) {
      root.replaceChildren(
        header("Before and after", traces.map(({ title }) => clean(title)).join(" → ")),
        section("Comparison", ...comparison(compared)),
        ...traces.flatMap((trace, i) => [
          h("h1", { class: "part" }, h("span", {}, i === 0 ? "Before" : "After"), " ", h("bdi", {}, clean(trace.title))),
          h("p", { class: "muted" }, about(trace.summary)),
          report(trace),
        ]),
      );
    } else {
      root.replaceChildren(header(clean(traces[0].title), about(traces[0].summary)), report(traces[0]));
    }
  } catch (error) {
    root.replaceChildren(h("p", { role: "alert" }, `This report cannot be shown: ${error instanceof Error ? error.message : error}`));
  }
  root.removeAttribute("aria-busy");
  requestAnimationFrame(() => performance.mark("offlock-painted"));
}

void main();
