// Builds the report page: one HTML file that the core embeds. `--check` says whether the file is up to date.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync, existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const page = here("../core/src/trace/report/page.html");

async function bundle(entry) {
  const result = await build({
    entryPoints: [here(entry)],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: "es2022",
    charset: "utf8",
    legalComments: "none",
  });
  return result.outputFiles[0].text.trim();
}

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

const [script, style] = await Promise.all([bundle("src/main.ts"), bundle("src/style.css")]);
if (/<\/script|<!--/i.test(script)) throw new Error("the script would end its own element");
const policy = `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; img-src data:`;
const html = readFileSync(here("src/index.html"), "utf8")
  .replace("{{policy}}", () => policy)
  .replace("{{style}}", () => style)
  .replace("{{script}}", () => script);

if (process.argv.includes("--check")) {
  if (!existsSync(page) || readFileSync(page, "utf8") !== html) {
    console.error("core/src/trace/report/page.html is not what viewer/ builds: run `npm run build` in viewer/");
    process.exit(1);
  }
} else {
  writeFileSync(page, html);
  console.log(`core/src/trace/report/page.html: ${(html.length / 1024).toFixed(1)} KiB`);
}
