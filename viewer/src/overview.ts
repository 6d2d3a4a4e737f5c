// The top of a report: what was recorded, the verdict and why, the key numbers.
import { h, label, prose } from "./dom";
import { capital, clean, count, duration, percent, plural } from "./format";
import type { Finding, Summary, Trace } from "./trace";
import { hasNoLock } from "./words";

/** What is known about the recording by this name, such as `pid`. */
export function known({ about }: Summary, key: string): string | undefined {
  return about.find(([name]) => name === key)?.[1];
}

export function about({ summary }: Trace): string {
  const value = (key: string) => known(summary, key);
  const exact = value("exact") === "false" ? "estimated from samples" : "recorded exactly";
  const started = Number(value("started"));
  const when = started > 0 ? new Date(started / 1e6).toLocaleString() : null;
  const parts = [
    [value("language"), value("runtime")].filter(Boolean).join(" "),
    when,
    duration(summary.length),
    plural(summary.threads.length, "thread"),
    plural(summary.events, "event"),
    summary.lost > 0 ? `${count(summary.lost)} lost` : null,
    exact,
  ];
  return parts.filter(Boolean).join(" · ");
}

/** What the findings come to: the first one that is no caveat. */
export function verdictOf({ summary }: Trace): Finding | undefined {
  return summary.findings.find(({ weight }) => weight !== "caveat");
}

/** The sentence before the figures on which it rests, and these. */
export function inTwo(text: string): [string, string] {
  const colon = text.indexOf(": ");
  return colon < 0 ? [text, ""] : [`${text.slice(0, colon)}.`, text.slice(colon + 2)];
}

/** The verdict as one sentence, then why. */
export function verdict(trace: Trace, of: string | null = null): HTMLElement {
  const first = verdictOf(trace);
  if (!first) return h("section", { class: "verdict note" }, h("p", {}, "Nothing was found."));
  const [sentence, figures] = inTwo(clean(first.text));
  const advice = first.advice ? h("p", { class: "advice" }, ...prose(clean(first.advice))) : null;
  const others = trace.summary.findings.filter((finding) => finding !== first);
  const caveats = others.filter(({ weight }) => weight === "caveat");
  return h(
    "section",
    { class: `verdict ${first.weight}`, "aria-label": "Verdict" },
    of ? h("p", { class: "muted" }, label(of, 80)) : null,
    h("h2", {}, ...prose(sentence)),
    figures ? h("p", { class: "figures" }, ...prose(capital(figures))) : null,
    advice,
    findings([...caveats, ...others.filter(({ weight }) => weight !== "caveat")]),
  );
}

const WEIGHTS = { caveat: "Caveat", problem: "Why", note: "Note" };

function findings(all: Finding[]): HTMLElement | null {
  if (all.length === 0) return null;
  const item = ({ weight, text, advice }: Finding) =>
    h(
      "li",
      { class: weight },
      h("span", { class: "weight" }, WEIGHTS[weight]),
      h("p", {}, ...prose(clean(text))),
      advice ? h("p", { class: "advice" }, ...prose(clean(advice))) : null,
    );
  return h("ul", { class: "findings" }, ...all.map(item));
}

/** The group that lost most in contended waits. */
export function mostLosing({ groups }: Trace) {
  return groups.reduce((a, b) => (a && a.summary.contended.total >= b.summary.contended.total ? a : b), groups[0]);
}

export function cards(trace: Trace): HTMLElement {
  const { summary, locks } = trace;
  const none = hasNoLock(summary);
  const lock = locks.find(({ summary }) => summary.kind === "interpreter")?.summary;
  const worst = mostLosing(trace);
  const waits = summary.contended;
  const longest = summary.threads.reduce((a, b) => (a && a.longest_hold >= b.longest_hold ? a : b), summary.threads[0]);
  const some = waits.count > 0;
  const all: [string, string, string][] = [
    ["Lock held", lock ? percent(lock.utilization) : "–", lock ? `of the time; ${lock.mean_waiters.toFixed(2)} threads waited on average` : none ? "this interpreter has no lock" : "no lock was used"],
    [none ? "Lost in waits" : "Lost to the lock", some ? percent(worst.summary.lost) : "–", some ? `of the active time of ${clean(worst.name)}` : none ? "no thread waited for another one" : "no thread waited while another held the lock"],
    ["Contended waits", count(waits.count), some ? `${duration(waits.total)} in sum` : ""],
    ["Half of them took at most", some ? duration(waits.p50) : "–", some ? `p99 ${duration(waits.p99)}, longest ${duration(waits.max)}` : ""],
    ["Longest hold", longest ? duration(longest.longest_hold) : "–", longest ? `by ${clean(longest.name)}` : ""],
    ["Useful parallelism", summary.useful_parallelism.toFixed(2), "threads computing on average"],
  ];
  const card = ([title, value, note]: [string, string, string]) =>
    h("div", { class: "card" }, h("dt", {}, title), h("dd", {}, h("b", {}, value), h("span", {}, h("bdi", {}, note))));
  return h("dl", { class: "cards" }, ...all.map(card));
}
