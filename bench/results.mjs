// Writes results as data, in the form of result.schema.json.
import { readFileSync, writeFileSync } from "node:fs";
import { arch, availableParallelism, cpus } from "node:os";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

/** The comment at the head of a program. */
function head(program) {
  const lines = readFileSync(program, "utf8").split("\n");
  const end = lines.findIndex((line) => !line.startsWith("//"));
  return lines.slice(0, end).map((line) => line.slice(2).trim()).join(" ");
}

/** One row; without a contestant its figures are about the case itself, or about a comparison. */
export const row = (name, figures, contestant = null) => ({ case: name, contestant, figures });

/** Writes rows into a file, with the method, the machine and the versions; without a file it does nothing. */
export function keep(file, rows, versions) {
  if (!file) return;
  const program = process.argv[1];
  const offlock = readFileSync(`${root}Cargo.toml`, "utf8").match(/^version = "(.*)"/m)[1];
  const result = {
    program: relative(root, program),
    time: new Date().toISOString().replace(/\.\d+Z$/, "Z"),
    machine: { architecture: arch(), cpu: cpus()[0]?.model ?? null, cores: availableParallelism(), remark: null },
    versions: { offlock, node: process.versions.node, ...versions },
    method: head(program),
    rows,
  };
  writeFileSync(file, `${JSON.stringify(result, null, 1)}\n`);
}
