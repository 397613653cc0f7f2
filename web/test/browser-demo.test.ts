/** The demo in a real browser: it finds what the program finds, and shows the specification's errors. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { embed, makeCards } from "../demo/sample.js";
import { run } from "./outside.js";
import { launch } from "./page.js";

const folder = mkdtempSync(join(tmpdir(), "weighbridge-"));
const sample = makeCards(50_000, 512);

/** Files that break a rule of the specification, each in a folder. */
function brokenFiles(): [string, Uint8Array][] {
  const { bytes, meta } = makeCards(20, 512);
  const text = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));
  const outside = bytes.slice();
  outside[42] = 0x80;
  const short = Uint8Array.from(new Int8Array(bytes.buffer), (code) => Math.trunc(code * 0.85));
  const cases: Record<string, [Uint8Array | undefined, unknown]> = {
    size: [bytes.subarray(0, 5120), meta],
    range: [outside, meta],
    norm: [short, meta],
    missing: [undefined, meta],
    float16: [new Uint8Array(20480), meta],
    list: [new Uint8Array(20480), meta.records],
  };
  return Object.entries(cases).flatMap(([name, [rows, meta]]) => [
    [`/${name}/meta.json`, text(meta)] as [string, Uint8Array],
    ...(rows === undefined ? [] : [[`/${name}/embeddings.i8bin`, rows] as [string, Uint8Array]]),
  ]);
}

const { page, requests, visit, close } = await launch(new Map(brokenFiles()));
afterAll(close);

const status = () => page.locator("#status");
const rows = async () => {
  const buttons = await page.locator("#hits button").all();
  return Promise.all(buttons.map(async (button) => Number(await button.getAttribute("data-row"))));
};

/** Rows that the program finds. */
function found(vector: Float32Array | number[], k: number): number[] {
  const { bytes, meta } = sample;
  const path = join(folder, "embeddings.i8bin");
  writeFileSync(path, bytes);
  writeFileSync(join(folder, "meta.json"), JSON.stringify(meta));
  writeFileSync(join(folder, "query.f32bin"), new Uint8Array(Float32Array.from(vector).buffer));
  const shape = { version: "1.0", quantization: { dtype: "float32", scale_factor: 1 }, shape: [1, 512], records: [{}] };
  writeFileSync(join(folder, "query.meta.json"), JSON.stringify(shape));
  const printed = run("search", path, "--queries", join(folder, "query.f32bin"), "-k", String(k), "--json");
  const { hits } = JSON.parse(printed) as { hits: { row: number }[] };
  return hits.map((hit) => hit.row);
}

test("the demo finds what the program finds, and asks for nothing but its own files", async () => {
  await visit("/");
  await status().filter({ hasText: "in" }).filter({ hasText: "ms" }).waitFor();
  await page.locator("#query").fill("silver dragon of the north");
  await status().filter({ hasText: "like “silver dragon of the north”" }).waitFor();
  const typed = embed("silver dragon of the north", 512);
  expect((await rows()).slice(0, 5)).toEqual(found(typed, 5));
  expect(await page.locator("#hits .name").first().textContent()).toMatch(/Silver Dragon/);
  if (process.env.WEIGHBRIDGE_UPDATE === "1") {
    await page.screenshot({ path: join(import.meta.dirname, "../demo/screenshot.png") });
  }

  // A card that is clicked is nearest to itself.
  const chosen = (await rows())[3] as number;
  await page.locator("#hits button").nth(3).click();
  await status().filter({ hasText: "near “" }).waitFor();
  const codes = new Int8Array(sample.bytes.buffer, chosen * 512, 512);
  expect((await rows()).slice(0, 5)).toEqual(
    found(
      Float32Array.from(codes, (code) => code / 127),
      5,
    ),
  );
  expect((await rows())[0]).toBe(chosen);

  // Among one colour.
  await page.getByLabel("green").check();
  expect(await page.locator("#hits .about").allTextContents()).toSatisfy((all: string[]) =>
    all.every((text) => text.startsWith("green")),
  );

  const paths = [...requests];
  expect(paths.filter((path) => !/^\/(demo|dist|sample)\/|^\/$/.test(path))).toEqual([]);
  expect(paths.filter((path) => path.endsWith(".wasm"))).toEqual(["/dist/wasm/search.wasm"]);
});

test("the keyboard is enough, in the dark and on narrow screens too", async () => {
  await page.emulateMedia({ colorScheme: "dark" });
  await page.setViewportSize({ width: 360, height: 700 });
  await visit("/");
  await status().filter({ hasText: "ms" }).waitFor();
  expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
  const dark = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  expect(dark).toBe("rgb(22, 24, 29)");
  await page.keyboard.type("quiet harbour");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  const second = (await rows())[1];
  await page.keyboard.press("Enter");
  await status().filter({ hasText: "near “" }).waitFor();
  expect((await rows())[0]).toBe(second);
  await page.keyboard.press("Escape");
  await status().filter({ hasText: "near “dragon”" }).waitFor();
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 1100, height: 640 });
});

test.each([
  [
    "size",
    "Embedding file size mismatch: expected 10240 bytes (20 cards × 512 dims), got 5120 bytes. Re-export embeddings using export_for_browser.py",
  ],
  [
    "range",
    "Invalid int8 value at index 42: -128. Values must be in range [-127, 127]. File may be corrupted or not in int8 format",
  ],
  [
    "norm",
    /^L2 norm out of expected range: 0\.\d+\. Expected approximately 1\.0 \(within ±0\.008\)\. Check quantization/,
  ],
  ["missing", "Failed to load embeddings: 404 Not Found. Check that /missing/embeddings.i8bin exists"],
  [
    "float16",
    /^Unsupported embedding format: .* legacy float16 export .* Re-export .* Documentation: docs\/browser\.md/,
  ],
  ["list", /^Unsupported embedding format: meta\.json is a bare array, that of the legacy float16 export/],
])("the page shows the specification's message: %s", async (name, message) => {
  await visit(`/?folder=/${name}`);
  await page.locator("#status.failed").waitFor();
  expect(await status().textContent()).toEqual(typeof message === "string" ? message : expect.stringMatching(message));
});
