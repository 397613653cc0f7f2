/** Files of every format: what is in them, where they come from, what they become. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Container, open, verify, WeighbridgeError } from "weighbridge";
import { LARGE_END, LARGE_ROWS, npyHeader, writeLarge } from "./large.js";
import { run } from "./outside.js";

const folder = mkdtempSync(join(tmpdir(), "weighbridge-"));
run("quickstart", "--offline", join(folder, "quickstart"));
const sample = (name: string) => join(folder, "quickstart", name);

test("a file tells its tensors, metadata, words and values", async () => {
  const file = await open(sample("tiny.weights"));
  expect(file.format).toBe("embd");
  const [first] = file.tensors;
  expect(file.metadata.model_name).toBeTypeOf("string");
  expect((await file.vocabulary())?.length).toBe(file.summary.vocabulary?.size);
  const name = first?.name as string;
  const all = await file.values(name);
  expect(all.data).toBeInstanceOf(Float32Array);
  expect(all.shape).toEqual(first?.shape);
  const width = all.shape[1] as number;
  const some = await file.values(name, { start: 2, end: 4 });
  expect(some.shape).toEqual([2, width]);
  expect([...some.data]).toEqual([...all.data.subarray(2 * width, 4 * width)]);
  const stats = await file.stats(name);
  const values = [...(all.data as Float32Array)];
  expect(stats?.max).toBe(Math.max(...values));
  const regions = await file.regions();
  expect(regions[0]?.start).toBe(0);
  expect(regions.at(-1)?.end).toBe(file.summary.size);
  await expect(file.values("nothing")).rejects.toMatchObject({ kind: "not-found" });
  await expect(file.values(name, { start: 5, end: 99999 })).rejects.toMatchObject({ kind: "refused" });
  await file.close();
  await expect(file.values(name)).rejects.toThrow("it was closed");
});

test("the same from bytes, a Blob and a server", async () => {
  const bytes = readFileSync(sample("tiny.weights"));
  const server = createServer((_, response) => response.end(bytes));
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/tiny.weights`;
  const files: Container[] = [
    await open(sample("tiny.weights")),
    await open(bytes),
    await open(new Blob([bytes])),
    await open(new File([bytes], "tiny.weights")),
    await open(url),
  ];
  server.close();
  for (const file of files) {
    expect(file.summary).toEqual(files[0]?.summary);
    await file.close();
  }
});

test("files beside, and a model directory", async () => {
  const path = sample("i8bin/embeddings.i8bin");
  const [rows, meta] = [readFileSync(path), readFileSync(sample("i8bin/meta.json"))];
  const file = await open(rows, { name: "embeddings.i8bin", beside: { "meta.json": meta } });
  expect(file.tensors).toEqual((await open(path)).tensors);
  expect(await file.record(0)).toEqual({ name: "grain" });
  const names = readdirSync(sample("hf-model"), { recursive: true, encoding: "utf8" });
  const parts = names.filter((name) => name.includes("."));
  const all = parts.map((name) => new File([readFileSync(join(sample("hf-model"), name))], name));
  const model = await open(all.filter((file) => !file.name.includes("/")));
  const own = await open(sample("hf-model"));
  expect(model.tensors.map((t) => t.name)).toEqual(own.tensors.map((t) => t.name));
});

test("damage is found with its rule and place", async () => {
  const verdict = await verify(sample("damaged.weights"));
  expect(verdict.findings.map((finding) => finding.rule)).toEqual(["EMBD-08", "EMBD-09"]);
  expect(verdict.ok).toBe(false);
  expect((await verify(sample("tiny.weights"), { quick: true })).ok).toBe(true);
  await expect(verify(sample("texts.txt"))).rejects.toBeInstanceOf(WeighbridgeError);
  await expect(open(join(folder, "nothing"))).rejects.toMatchObject({ kind: "not-found" });
});

test("what convert makes is what the program writes", async () => {
  const file = await open(sample("tiny.weights"));
  const { files, report } = await file.convert("safetensors");
  const written = join(folder, "made.safetensors");
  run("convert", sample("tiny.weights"), written);
  expect(files).toHaveLength(1);
  expect(Buffer.from(files[0]?.bytes as Uint8Array).equals(readFileSync(written))).toBe(true);
  expect(report.losses).toEqual([]);
  const words = await open(sample("words.fifu"));
  await expect(words.convert("npy")).rejects.toMatchObject({ kind: "loss" });
  const npy = await words.convert("npy", { allowLoss: true });
  expect(npy.report.losses.length).toBeGreaterThan(0);
  const half = await file.convert("safetensors", { dtype: "f16", allowLoss: true, select: ["*word_embeddings*"] });
  const again = await open(half.files[0]?.bytes as Uint8Array<ArrayBuffer>);
  expect(again.tensors.map((tensor) => tensor.encoding)).toEqual(["f16"]);
  expect((await again.values(again.tensors[0]?.name as string)).dtype).toBe("f32");
});

test("a file of 3 GB opens without being loaded", async () => {
  const path = join(folder, "large.npy");
  writeLarge(path);
  const before = process.memoryUsage().rss;
  const file = await open(path);
  expect(file.tensors[0]?.shape).toEqual([LARGE_ROWS, 384]);
  const last = await file.values(file.tensors[0]?.name as string, { start: LARGE_ROWS - 1 });
  expect([...last.data.subarray(0, 4)]).toEqual(LARGE_END);
  expect(process.memoryUsage().rss - before).toBeLessThan(200_000_000);
  await file.close();
  rmSync(path);
});

test("a file that is rewritten while it is open is an error", async () => {
  const path = join(folder, "changing.npy");
  writeFileSync(path, Buffer.concat([npyHeader(1000, 384), Buffer.alloc(1000 * 384 * 4)]));
  const file = await open(path);
  const name = file.tensors[0]?.name as string;
  expect((await file.values(name, { start: 999 })).data).toHaveLength(384);
  writeFileSync(path, "something else");
  await expect(file.values(name, { start: 999 })).rejects.toMatchObject({ kind: "changed" });
});
