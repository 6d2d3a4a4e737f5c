// The top of a report: what was recorded, the key numbers, what they mean.
import { h, prose } from "./dom";
import { clean, count, duration, percent } from "./format";
import type { Finding, Summary, Trace } from "./trace";

export function about(summary: Summary): string {
  const value = (key: string) => summary.about.find(([name]) => name === key)?.[1];
  const exact = value("exact") === "false" ? "estimated from samples" : "recorded exactly";
  const started = Number(value("started"));
  const when = started > 0 ? new Date(started / 1e6).toLocaleString() : null;
  const parts = [
    [value("language"), value("runtime")].filter(Boolean).join(" "),
    when,
    duration(summary.length),
    `${count(summary.threads.length)} threads`,
    `${count(summary.events)} events`,
    summary.lost > 0 ? `${count(summary.lost)} lost` : null,
    exact,
  ];
  return parts.filter(Boolean).join(" · ");
}

export function cards(trace: Trace): HTMLElement {
  const { summary } = trace;
  const lock = trace.locks[0]?.summary;
  const longest = summary.threads.reduce((a, b) => (a && a.longest_hold >= b.longest_hold ? a : b), summary.threads[0]);
  const all: [string, string, string][] = [
    ["Lock held", lock ? percent(lock.utilization) : "–", "of the time"],
    ["Threads waiting", lock ? lock.mean_waiters.toFixed(2) : "–", "on average"],
    ["Useful parallelism", summary.useful_parallelism.toFixed(2), "threads computing on average"],
    ["Time waited", duration(summary.times.waiting), "by all threads together"],
    ["Typical wait", duration(summary.waits.p50), `p99 ${duration(summary.waits.p99)}, of ${count(summary.waits.count)} waits`],
    ["Longest hold", longest ? duration(longest.longest_hold) : "–", longest ? `by ${clean(longest.name)}` : ""],
  ];
  const card = ([title, value, note]: [string, string, string]) =>
    h("div", { class: "card" }, h("dt", {}, title), h("dd", {}, h("b", {}, value), h("span", {}, h("bdi", {}, note))));
  return h("dl", { class: "cards" }, ...all.map(card));
}

const WEIGHTS = { caveat: "Caveat", problem: "Problem", note: "Note" };

export function findings(all: Finding[]): HTMLElement {
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
