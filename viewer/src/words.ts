// Words that depend on what a lock stands for: an interpreter without a lock has pauses and locks of objects instead.
import { clean } from "./format";
import type { LockSummary, Summary } from "./trace";

/** Whether it is known which threads hold it. */
export function isHeld({ kind }: LockSummary): boolean {
  return kind === "interpreter" || kind === "stop_the_world";
}

export function hasNoLock({ about }: Summary): boolean {
  return about.some(([key, value]) => key === "lock" && value === "none");
}

/** What the states of threads mean. */
export function meanings(summaries: Summary[]): string[] {
  const [off, idle] = ["computes without the lock", "is blocked on something else"];
  if (summaries.every(hasNoLock)) return ["has stopped others", "waits for another thread, in the interpreter", idle, "sleeps", "computes", "has stopped others to collect garbage"];
  return ["holds the lock", "wants the lock", idle, "sleeps", off, "collects garbage with the lock"];
}

export function titleOfBlame({ kind, name }: LockSummary): string {
  return kind === "stop_the_world" ? "Which threads had stopped others (stop-the-world pauses)" : `Which threads held the lock while others waited: ${clean(name)}`;
}

/** What precedes the threads behind which one waited. */
export function heldBy({ kind }: LockSummary): string {
  return { interpreter: "The lock was held meanwhile by", stop_the_world: "It was stopped by", spinning: "Another thread had the lock.", objects: "Another thread used the object." }[kind];
}

/** Of a wait, the part in which no thread is known to have held the lock. */
export function heldByNone({ kind }: LockSummary): string | null {
  return { interpreter: "no thread (being handed over)", stop_the_world: "no thread any more (a processor)", spinning: null, objects: null }[kind];
}
