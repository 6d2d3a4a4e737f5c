// Several processes of one run, or recordings of one process: which one lost most, and how the others fared.
import { h, label } from "./dom";
import { capital, clean, count, duration, percent } from "./format";
import { inTwo, known, mostLosing, verdictOf } from "./overview";
import { table } from "./table";
import type { Trace } from "./trace";

/** What the traces are of: processes, unless several are of one, as after a signal that starts and stops it. */
export function kindOf(traces: Trace[]): { one: string; several: string } {
  const pids = traces.map(({ summary }) => known(summary, "pid")).filter((pid) => pid !== undefined);
  return new Set(pids).size < pids.length ? { one: "recording", several: "recordings" } : { one: "process", several: "processes" };
}

/** A row for each process or recording; `choose` shows its details. */
export function processTable(traces: Trace[], choose: (trace: Trace) => void): HTMLElement {
  const kind = kindOf(traces);
  const worst = (trace: Trace) => mostLosing(trace)?.summary;
  return table<Trace>(
    `${capital(kind.several)}, the one that lost most first`,
    [
      { title: kind.one, cell: (trace) => h("button", { type: "button", class: "link", onclick: () => choose(trace) }, label(trace.title)), key: ({ title }) => title, heads: true },
      { title: "verdict", prose: true, cell: (trace) => clean(inTwo(verdictOf(trace)?.text ?? "")[0]).replaceAll("`", "") },
      { title: "lock held", cell: ({ locks }) => (locks[0] ? percent(locks[0].summary.utilization) : "–"), key: ({ locks }) => locks[0]?.summary.utilization ?? 0 },
      { title: "lost", cell: (trace) => percent(worst(trace)?.lost ?? 0), key: (trace) => worst(trace)?.lost ?? 0 },
      { title: "waits", cell: (trace) => count(worst(trace)?.contended.count ?? 0), key: (trace) => worst(trace)?.contended.count ?? 0 },
      { title: "p99", cell: (trace) => duration(worst(trace)?.contended.p99 ?? 0), key: (trace) => worst(trace)?.contended.p99 ?? 0 },
      { title: "threads", cell: ({ threads }) => count(threads.length), key: ({ threads }) => threads.length },
      { title: "length", cell: ({ summary }) => duration(summary.length), key: ({ summary }) => summary.length },
    ],
    traces,
  );
}
