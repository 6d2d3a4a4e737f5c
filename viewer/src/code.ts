// The program's code in a trace: functions, stacks, and when threads had which.
import type { Bytes } from "./bytes";

export interface CodeFunction {
  name: string;
  /** The path of its file, empty if it has none. */
  file: string;
}

/** A function in execution: a node of the tree of all stacks. A stack is named by its innermost frame. */
export interface Frame {
  caller: Frame | null;
  /** Null stands for outer frames that were left out; then the line is their number. */
  function: CodeFunction | null;
  /** 0 if it is unknown. */
  line: number;
}

/** Parts of a thread's holds during which others waited and it had one stack, as far as is known, in the order of time. */
export interface Pieces {
  count: number;
  starts: Float64Array;
  ends: Float64Array;
  locks: Uint32Array;
  stacks: Frame[];
}

/** The stacks of a thread that had waited for long, and when. */
export interface WaitingStacks {
  times: Float64Array;
  stacks: Frame[];
}

/** All stacks of a recording; the core writes them in this order. */
export class CodeReader {
  private readonly frames: Frame[] = [];

  constructor(
    private readonly bytes: Bytes,
    functions: [name: string, file: string][],
    private readonly offset: number,
  ) {
    const all = functions.map(([name, file]): CodeFunction => ({ name, file }));
    for (let left = bytes.number(); left > 0; left--) {
      const caller = this.frames[bytes.number() - 1] ?? null;
      this.frames.push({ caller, function: all[bytes.number() - 1] ?? null, line: bytes.number() });
    }
  }

  /** Of the next thread. */
  pieces(): Pieces {
    const { bytes } = this;
    const count = bytes.number();
    const pieces: Pieces = { count, starts: new Float64Array(count), ends: new Float64Array(count), locks: new Uint32Array(count), stacks: [] };
    let time = this.offset;
    for (let i = 0; i < count; i++) {
      pieces.starts[i] = time += bytes.number();
      pieces.ends[i] = time + bytes.number();
      pieces.locks[i] = bytes.number();
      pieces.stacks.push(this.frames[bytes.number() - 1]);
    }
    return pieces;
  }

  /** Of the same thread, after its pieces. */
  waiting(): WaitingStacks {
    const { bytes } = this;
    const count = bytes.number();
    const waiting: WaitingStacks = { times: new Float64Array(count), stacks: [] };
    let time = this.offset;
    for (let i = 0; i < count; i++) {
      waiting.times[i] = time += bytes.number();
      waiting.stacks.push(this.frames[bytes.number() - 1]);
    }
    return waiting;
  }
}

/** The frames of a stack, innermost first. */
export function framesOf(stack: Frame): Frame[] {
  const frames: Frame[] = [];
  for (let frame: Frame | null = stack; frame; frame = frame.caller) frames.push(frame);
  return frames;
}

export function nameOf({ function: called, line }: Frame): string {
  return called?.name ?? `… ${line} frames left out`;
}

/** File and line, as far as they are known. */
export function placeOf({ function: called, line }: Frame): string {
  if (!called?.file) return "";
  return line > 0 ? `${called.file}:${line}` : called.file;
}
