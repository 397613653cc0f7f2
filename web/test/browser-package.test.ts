/** The package in a real browser: speed and memory, files and rows in a Worker, texts. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import { afterAll, expect, test } from "vitest";
import { makeCards } from "../demo/sample.js";
import { LARGE_END, LARGE_ROWS, writeLarge } from "./large.js";
import { has, minilm, run, specification } from "./outside.js";
import { launch } from "./page.js";

const folder = mkdtempSync(join(tmpdir(), "weighbridge-"));
run("quickstart", "--offline", join(folder, "quickstart"));
const file = (name: string): [string, Uint8Array] => [`/files/${name}`, readFileSync(join(folder, "quickstart", name))];
const more = new Map([file("tiny.weights"), file("damaged.weights")]);
more.set("/index_out/embeddings.i8bin", makeCards(20, 512).bytes);
if (existsSync(minilm)) {
  more.set("/files/minilm.mcf", readFileSync(minilm));
}
// What a bundler makes of a page, with the module beside it.
const bundle = await build({
  entryPoints: [join(import.meta.dirname, "install/page.js")],
  alias: { "weighbridge/search": join(import.meta.dirname, "../dist/search.js") },
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  write: false,
});
more.set("/bundle/page.js", bundle.outputFiles[0]?.contents ?? new Uint8Array());
more.set("/bundle/wasm/search.wasm", readFileSync(join(import.meta.dirname, "../dist/wasm/search.wasm")));
const { page, requests, visit, close } = await launch(more);
afterAll(close);

test("the specification's example runs with its import changed", async (context) => {
  if (!has(specification)) {
    return context.skip();
  }
  const text = readFileSync(specification, "utf8");
  const example = text.split("### TypeScript Example")[1]?.split("```typescript")[1]?.split("```")[0] ?? "";
  const usage = example.split("// Usage")[1] ?? "";
  expect(usage).toContain("loadEmbeddings(");
  await visit("/empty.html");
  const content = `import { loadEmbeddings, dequantize } from "weighbridge";${usage}\nwindow.made = float32Embeddings;`;
  await page.addScriptTag({ type: "module", content });
  await page.waitForFunction(() => "made" in window);
  const made = await page.evaluate(() => [...(window as unknown as { made: Float32Array }).made]);
  const codes = new Int8Array(makeCards(20, 512).bytes.buffer);
  expect(made).toEqual([...Float32Array.from(codes, (code) => code / 127)]);
});

test("50,000 rows take a query in 10 ms, a third of the specification's loop, and little memory", async () => {
  await visit("/empty.html");
  const session = await page.context().newCDPSession(page);
  const figures = await page.evaluate(async () => {
    const { loadEmbeddings } = window.weighbridge;
    const started = performance.now();
    const cards = await loadEmbeddings("/sample/embeddings.i8bin");
    const loading = performance.now() - started;
    const memory = cards.memory as number;
    const median = (work: (i: number) => void) => {
      const times = Array.from({ length: 101 }, (_, i) => {
        const begin = performance.now();
        work(i);
        return performance.now() - begin;
      });
      return times.sort((a, b) => a - b)[50] as number;
    };
    const queries: Float32Array[] = Array.from({ length: 101 }, (_, i) => cards.row(i * 400));
    const own = median((i) => void cards.search(queries[i] as Float32Array, 10));
    const batch = median(() => cards.searchBatch(queries.slice(0, 16), 10)) / 16;
    // What the specification does: floats, and the dot product with each of them.
    const floats: Float32Array = cards.dequantize();
    const loop = (query: Float32Array) => {
      const scores = new Float32Array(50_000);
      for (let i = 0; i < 50_000; i++) {
        let dot = 0;
        for (let j = 0; j < 512; j++) {
          dot += (floats[i * 512 + j] as number) * (query[j] as number);
        }
        scores[i] = dot;
      }
      return [...scores.keys()].sort((a, b) => (scores[b] as number) - (scores[a] as number)).slice(0, 10);
    };
    const onlyLoop = (query: Float32Array) => {
      let best = -1;
      for (let i = 0; i < 50_000; i++) {
        let dot = 0;
        for (let j = 0; j < 512; j++) {
          dot += (floats[i * 512 + j] as number) * (query[j] as number);
        }
        best = Math.max(best, dot);
      }
      return best;
    };
    const isSame = queries.slice(0, 3).every((query) => {
      const hits: { row: number }[] = cards.search(query, 10, { metric: "dot" });
      return hits[0]?.row === loop(query)[0];
    });
    const theirs = median((i) => void onlyLoop(queries[i] as Float32Array));
    return { loading, memory, own, batch, theirs, isSame };
  });
  const heap = await session.send("Runtime.getHeapUsage");
  console.log("50,000 x 512 in the page:", figures, heap);
  expect(figures.isSame).toBe(true);
  // Sizes don't depend on the machine; times do, and are told rather than tested.
  expect(figures.memory).toBeLessThan(25_600_000 + 10_000_000);
});

test("a browser without vectors gets the module without them, and finds the same", async () => {
  await visit("/empty.html");
  const search = async () => {
    const { loadEmbeddings } = window.weighbridge;
    const cards = await loadEmbeddings("/index_out/embeddings.i8bin");
    return cards.search(cards.row(3), 5) as unknown;
  };
  const usual = await page.evaluate(search);
  await visit("/empty.html");
  await page.evaluate(() => {
    WebAssembly.validate = () => false;
  });
  expect(await page.evaluate(search)).toEqual(usual);
  expect(requests.filter((url) => url.endsWith(".wasm"))).toEqual(["/dist/wasm/search-plain.wasm"]);
});

test("a bundle finds its module beside it", async () => {
  await visit("/empty.html");
  await page.addScriptTag({ type: "module", url: "/bundle/page.js" });
  await page.waitForFunction(() => "nearest" in window);
  expect(await page.evaluate(() => (window as unknown as { nearest: number }).nearest)).toBe(3);
  expect(requests.filter((url) => url.endsWith(".wasm"))).toEqual(["/bundle/wasm/search.wasm"]);
  console.log(`the bundle of a page that searches has ${more.get("/bundle/page.js")?.length} bytes of JavaScript`);
});

test("files are opened in a Worker: from the network range by range, and from a File", async () => {
  await visit("/empty.html");
  const told = await page.evaluate(async () => {
    const { open, verify } = window.weighbridge;
    const file = await open("files/tiny.weights");
    const name = file.tensors[0]?.name ?? "";
    const bytes = await (await fetch("/files/tiny.weights")).arrayBuffer();
    const chosen = await open(new File([bytes], "tiny.weights"));
    const values = await file.values(name, { start: 1, end: 2 });
    const again = await chosen.values(name, { start: 1, end: 2 });
    const damaged = await verify("/files/damaged.weights");
    const error = await open("/files/nothing").catch((error: { name: string; kind: string }) => [
      error.name,
      error.kind,
    ]);
    const converted = await chosen.convert("safetensors");
    return {
      summary: file.summary as unknown,
      same: JSON.stringify(file.summary) === JSON.stringify(chosen.summary),
      values: [...values.data] as number[],
      again: [...again.data] as number[],
      rules: damaged.findings.map((finding: { rule: string }) => finding.rule) as string[],
      error: error as unknown,
      converted: converted.files[0]?.bytes.length,
    };
  });
  expect(told.summary).toEqual(JSON.parse(run("inspect", "--json", join(folder, "quickstart/tiny.weights"))));
  expect(told.same).toBe(true);
  expect(told.values).toEqual(told.again);
  expect(told.rules).toEqual(["EMBD-08", "EMBD-09"]);
  expect(told.error).toEqual(["WeighbridgeError", "not-found"]);
  expect(told.converted).toBeGreaterThan(10_000);
});

test("a File of 3 GB that somebody chose opens without being loaded", async () => {
  const path = join(folder, "large.npy");
  writeLarge(path);
  await visit("/empty.html");
  await page.evaluate(() => {
    document.body.append(Object.assign(document.createElement("input"), { type: "file" }));
  });
  await page.locator("input[type=file]").setInputFiles(path);
  const told = await page.evaluate(async () => {
    const [chosen] = document.querySelector<HTMLInputElement>("input[type=file]")?.files ?? [];
    const file = await window.weighbridge.open(chosen as File);
    const [tensor] = file.tensors;
    const rows = tensor?.shape[0] as number;
    const last = await file.values(tensor?.name ?? "", { start: rows - 1 });
    return { rows, end: [...last.data.subarray(0, 4)] as number[] };
  });
  expect(told).toEqual({ rows: LARGE_ROWS, end: LARGE_END });
  rmSync(path);
});

test("rows are searched in a Worker with another import", async () => {
  await visit("/empty.html");
  const told = await page.evaluate(async () => {
    const { loadEmbeddings } = window.worker;
    let last = 0;
    const cards = await loadEmbeddings("sample/embeddings.i8bin", "sample/meta.json", {
      onProgress: (progress: { loaded: number }) => {
        last = progress.loaded;
      },
    });
    const filter = (record: Record<string, unknown> | undefined) => record?.colour === "red";
    const hits = await cards.search(await cards.row(17), 5, { filter });
    const aborted = new AbortController();
    const stopped = loadEmbeddings("/sample/embeddings.i8bin", undefined, { signal: aborted.signal });
    aborted.abort();
    const name = await stopped.catch((error: Error) => error.name);
    return {
      last,
      name: name as unknown,
      colours: hits.map((hit) => hit.record?.colour),
    };
  });
  expect(told).toEqual({ last: 25_600_000, name: "AbortError", colours: Array(5).fill("red") });
});

test("texts become vectors in the page", async (context) => {
  if (!has(minilm)) {
    return context.skip();
  }
  await visit("/empty.html");
  const texts = Array.from(
    { length: 24 },
    (_, i) => `The ${i}th truck waits at the weighbridge, loaded with gravel and a little hay.`,
  );
  const told = await page.evaluate(async (texts) => {
    const { Encoder } = window.weighbridge;
    const begin = performance.now();
    const encoder = await Encoder.load("/files/minilm.mcf");
    const loading = performance.now() - begin;
    let [rate, vectors] = [0, [] as Float32Array[]];
    // The browser compiles better what it has run for a while.
    for (let round = 0; round < 6; round++) {
      const start = performance.now();
      vectors = await encoder.embed(texts);
      rate = Math.max(rate, texts.length / ((performance.now() - start) / 1000));
    }
    return { loading, rate, vector: [...(vectors[0] as Float32Array)] };
  }, texts);
  console.log(`the page embeds ${told.rate.toFixed(1)} texts/s of 20 tokens, after ${told.loading.toFixed(0)} ms`);
  const expected = JSON.parse(run("embed", "--model", minilm, "--precision", "q8", texts[0] as string)) as {
    vector: number[];
  };
  const cosine = expected.vector.reduce((sum, value, i) => sum + value * (told.vector[i] as number), 0);
  expect(cosine).toBeGreaterThan(0.9995);
});
