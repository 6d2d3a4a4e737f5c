// Puts the report together.
import { keepAddress } from "./address";
import { blameMatrix } from "./blame";
import { blamedCode } from "./blamed";
import { fromBase64 } from "./bytes";
import { comparison, type Comparison, groupNamed, outcome } from "./compare";
import { details } from "./details";
import { h, label } from "./dom";
import { capital, clean, duration } from "./format";
import { histogram } from "./histogram";
import { blameByMark, markTable } from "./marks";
import { about, cards, verdict } from "./overview";
import { kindOf, processTable } from "./processes";
import { groupTable, spanTable, stateTable, waitTable } from "./tables";
import { lightWhilePrinting, toggleTheme } from "./theme";
import { swatch } from "./swatch";
import { Timeline } from "./timeline/timeline";
import { type Group, load, STATES, type Trace } from "./trace";
import { isHeld, meanings, titleOfBlame } from "./words";

function section(title: string, ...content: (Node | string | null)[]): HTMLElement {
  return h("section", {}, h("h2", {}, title), ...content);
}

function legend(traces: Trace[]): HTMLElement {
  const stacks = traces.some(({ threads }) => threads.some(({ pieces, waiting }) => pieces.count + waiting.stacks.length > 0));
  const tick = stacks ? h("li", {}, h("span", { class: "tick" }), "stack", h("span", { class: "muted" }, " taken while a thread waited")) : null;
  const meaning = meanings(traces.map(({ summary }) => summary));
  return h("ul", { class: "legend" }, ...STATES.map((name, state) => h("li", {}, swatch(state), ` ${name}`, h("span", { class: "muted" }, ` ${meaning[state]}`))), tick);
}

/** The rest of the page, once its top and the timeline are on the screen. */
function later(work: () => void): void {
  requestAnimationFrame(() =>
    setTimeout(() => {
      work();
      performance.mark("offlock-complete");
    }),
  );
}

/** What the timeline shows, and what is selected in it. */
function timelineSection(traces: Trace[], timeline: Timeline): HTMLElement {
  return section("Timeline", legend(traces), timeline.element, details(traces, timeline), stateTable(traces, timeline));
}

/** All about one recording that is not in the timeline. */
function further(trace: Trace, timeline: Timeline): HTMLElement[] {
  const { operations, marks } = trace.summary;
  const contended = trace.locks.filter(({ summary }) => summary.waited > 0 && isHeld(summary));
  return [
    section("Threads", groupTable(trace, timeline)),
    ...contended.map((lock) => section(titleOfBlame(lock.summary), blameByMark(trace, lock), blameMatrix(trace, lock))),
    section("How long threads waited", histogram(trace)),
    ...(marks.length > 0 ? [section("Marks", markTable(trace))] : []),
    ...(operations.length > 0 ? [section("Operations off the lock", spanTable("What threads did during operations", operations))] : []),
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

/** The report on one recording. */
function single(trace: Trace, timeline: Timeline): HTMLElement[] {
  const rest = h("div");
  later(() => {
    timeline.watchFirst();
    const code = blamedCode(trace, timeline);
    rest.append(...(code ? [code] : []), section("Longest waits", waitTable([trace], timeline)), ...further(trace, timeline));
  });
  return [header(clean(trace.title), about(trace)), verdict(trace), cards(trace), timelineSection([trace], timeline), rest];
}

/** One of several recordings at a time, chosen by its name. */
class Parts {
  readonly element = h("div");
  private readonly choice: HTMLElement;
  private readonly content = h("div");
  /** What was shown already, with what was chosen in it. */
  private readonly known = new Map<Trace, Node[]>();

  constructor(
    private readonly named: [string, Trace][],
    private readonly timeline: Timeline,
  ) {
    this.choice = h("div", { class: "parts", role: "group", "aria-label": "Recording" });
    this.element.append(this.choice, this.content);
  }

  show(trace: Trace): void {
    const button = ([name, each]: [string, Trace]) => h("button", { type: "button", "aria-pressed": String(each === trace), onclick: () => this.show(each) }, label(name, 60));
    this.choice.replaceChildren(...this.named.map(button));
    const known = this.known.get(trace) ?? this.about(trace);
    this.known.set(trace, known);
    this.content.replaceChildren(...known);
  }

  private about(trace: Trace): Node[] {
    const code = blamedCode(trace, this.timeline);
    return [h("p", { class: "muted" }, about(trace)), verdict(trace), cards(trace), ...(code ? [code] : []), ...further(trace, this.timeline)];
  }

  /** From elsewhere on the page. */
  go(trace: Trace): void {
    this.show(trace);
    this.element.scrollIntoView();
  }
}

/** The report on several processes of one run, or recordings of one process: the one that lost most leads. */
function processes(traces: Trace[], timeline: Timeline): HTMLElement[] {
  const [worst] = traces;
  const { several } = kindOf(traces);
  const parts = new Parts(traces.map((trace): [string, Trace] => [trace.title, trace]), timeline);
  const length = Math.max(...traces.map(({ end }) => end));
  const rest = h("div");
  later(() => {
    timeline.watchFirst();
    parts.show(worst);
    rest.append(section("Longest waits", waitTable(traces, timeline)), parts.element);
  });
  return [
    header(clean(worst.title), `${traces.length} ${several} of one run · ${duration(length)}`),
    verdict(worst, `${worst.title}, which lost most of ${traces.length} ${several}`),
    section(capital(several), processTable(traces, (trace) => parts.go(trace))),
    timelineSection(traces, timeline),
    rest,
  ];
}

/** The report on two recordings, before and after a change. */
function compared(traces: Trace[], timeline: Timeline, changes: Comparison): HTMLElement[] {
  const names = traces.map(({ title }, i): [string, Trace] => [`${i === 0 ? "Before" : "After"}: ${title}`, traces[i]]);
  const parts = new Parts(names, timeline);
  const rest = h("div");
  later(() => {
    timeline.watchFirst();
    parts.show(traces[1]);
    rest.append(section("Longest waits", waitTable(traces, timeline)), parts.element);
  });
  return [
    header("Before and after", traces.map(({ title }) => clean(title)).join(" → ")),
    outcome(changes),
    timelineSection(traces, timeline),
    section("Comparison", h("div", { class: "compared" }, ...comparison(changes, traces))),
    rest,
  ];
}

/** In the order of appearance groups come by their first thread; groups that are compared come in the same order in both. */
function ranks(traces: Trace[], changes: Comparison | null): (group: Group, trace: Trace) => number {
  if (!changes) return ({ threads }) => Math.min(...threads);
  const orders = traces.map((trace) => changes.threads.map(({ name }) => groupNamed(trace, name)));
  return (group, trace) => orders[trace.index].indexOf(group);
}

async function data(): Promise<{ traces: Trace[]; changes: Comparison | null }> {
  const packed = [...document.querySelectorAll("script[id^=offlock-trace-]")].map(({ textContent }) => textContent ?? "");
  const changes = document.getElementById("offlock-comparison")?.textContent;
  return { traces: await Promise.all(packed.map(load)), changes: changes ? JSON.parse(new TextDecoder().decode(fromBase64(changes))) : null };
}

async function main(): Promise<void> {
  const root = document.getElementById("report") as HTMLElement;
  try {
    const { traces, changes } = await data();
    lightWhilePrinting();
    const timeline = new Timeline(traces, ranks(traces, changes));
    addEventListener("beforeprint", () => timeline.draw());
    root.replaceChildren(...(changes ? compared(traces, timeline, changes) : traces.length > 1 ? processes(traces, timeline) : single(traces[0], timeline)));
    keepAddress(traces, timeline);
  } catch (error) {
    root.replaceChildren(h("p", { role: "alert" }, `This report cannot be shown: ${error instanceof Error ? error.message : error}`));
  }
  root.removeAttribute("aria-busy");
  requestAnimationFrame(() => performance.mark("offlock-painted"));
}

void main();
