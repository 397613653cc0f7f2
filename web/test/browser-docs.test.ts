/** Every snippet of docs/browser.md runs in a page, and those of the README. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { transform } from "esbuild";
import { afterAll, expect, test } from "vitest";
import { cards } from "./cards.js";
import { program, run } from "./outside.js";
import { launch } from "./page.js";

const root = join(import.meta.dirname, "../..");

/** The files that the snippets name. */
function files(): Map<string, Uint8Array> {
  const folder = mkdtempSync(join(tmpdir(), "weighbridge-"));
  const at = (name: string) => join(folder, name);
  run("quickstart", "--offline", at("quickstart"));
  run("convert", at("quickstart/hf-model"), at("minilm.mcf"));
  const input = at("quickstart/texts.txt");
  execFileSync(program, ["embed", "--model", at("minilm.mcf"), "--input", input, "--output", at("notes.i8bin")], {
    stdio: "ignore",
  });
  const { bytes, meta } = cards(50, 64);
  writeFileSync(at("cards.i8bin"), bytes);
  writeFileSync(at("cards.json"), JSON.stringify(meta));
  const found: [string, string][] = [
    ["/cards.i8bin", "cards.i8bin"],
    ["/meta.json", "cards.json"],
    ["/notes.i8bin", "notes.i8bin"],
    ["/notes.meta.json", "meta.json"],
    ["/minilm.mcf", "minilm.mcf"],
    ["/notes/minilm.mcf", "minilm.mcf"],
    ["/notes/notes.i8bin", "notes.i8bin"],
    ["/notes/meta.json", "meta.json"],
    ["/tiny.weights", "quickstart/tiny.weights"],
    ["/damaged.weights", "quickstart/damaged.weights"],
  ];
  return new Map(found.map(([url, name]) => [url, readFileSync(at(name))]));
}

const { page, visit, close } = await launch(files());
afterAll(close);

/** Runs a snippet to its end, and gives what it printed. */
async function printed(block: string): Promise<string[]> {
  const { code } = await transform(block, { loader: "ts", format: "esm", target: "es2022" });
  const lines: string[] = [];
  const listen = (message: { text(): string }) => lines.push(message.text());
  page.on("console", listen);
  const failed = page.waitForEvent("pageerror", { timeout: 60_000 }).catch(() => undefined);
  await page.addScriptTag({ type: "module", content: `${code}\nwindow.done = true;` });
  const done = page.waitForFunction(() => "done" in window, undefined, { timeout: 60_000 });
  const error = await Promise.race([failed, done.then(() => undefined)]);
  expect(error, block).toBeUndefined();
  page.off("console", listen);
  return lines;
}

function snippets(name: string): string[] {
  const text = readFileSync(join(root, name), "utf8");
  return [...text.matchAll(/^```ts\n(.*?)^```/gms)].map((found) => found[1] as string);
}

test("the snippets of docs/browser.md run, and print something", async () => {
  const blocks = snippets("docs/browser.md");
  expect(blocks.length).toBeGreaterThanOrEqual(6);
  for (const block of blocks) {
    await visit("/empty.html");
    expect((await printed(block)).length, block).toBeGreaterThan(0);
  }
});

test("the search box of the README finds notes", async () => {
  const [block, ...others] = snippets("README.md");
  expect(others).toEqual([]);
  await visit("/notes/empty.html");
  await printed(block as string);
  await page.locator("input").fill("trains running late");
  await page.locator("li").nth(2).waitFor();
  expect(await page.locator("li").allTextContents()).toSatisfy((all: string[]) => all.every((text) => text.length > 5));
});
