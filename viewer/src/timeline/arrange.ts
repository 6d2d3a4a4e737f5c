// Which threads have a row, in which order.
import type { Trace } from "../trace";

export type Order = "appearance" | "waiting" | "running" | "name";

/** The threads in which a text occurs: in their name, their marks or their operations. */
export function arranged({ threads }: Trace, text: string, order: Order): number[] {
  const has = (name: string) => name.toLowerCase().includes(text);
  const fits = (thread: number) => {
    const { name, marks, regions } = threads[thread];
    return !text || has(name) || marks.some((mark) => has(mark.name)) || regions.some((region) => has(region.name));
  };
  const key = {
    appearance: () => 0,
    waiting: (thread: number) => -threads[thread].summary.times.waiting,
    running: (thread: number) => -threads[thread].summary.times.running,
    name: () => 0,
  }[order];
  const byName = (a: number, b: number) => threads[a].name.localeCompare(threads[b].name);
  const shown = threads.map((_, thread) => thread).filter(fits);
  return shown.sort((a, b) => key(a) - key(b) || (order === "name" ? byName(a, b) : a - b));
}
