/** Rows of int8: loading with the specification's checks and messages, and searching. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { dequantize, loadEmbeddings, type Meta, STRICT_NORMS, WeighbridgeError } from "weighbridge/search";
import { cards, nearest } from "./cards.js";

const { bytes, meta } = cards(300, 64);
let server: Server;
let origin: string;

beforeAll(async () => {
  server = createServer((request, response) => {
    const body = { "/cards.i8bin": bytes, "/meta.json": JSON.stringify(meta) }[request.url ?? ""];
    const isChunked = request.url === "/chunked";
    const headers = body === undefined || isChunked ? {} : { "content-length": body.length };
    response.writeHead(body === undefined && !isChunked ? 404 : 200, headers);
    response.end(isChunked ? bytes : body);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => server.close());

async function failure(work: Promise<unknown>): Promise<WeighbridgeError> {
  const error: unknown = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(WeighbridgeError);
  return error as WeighbridgeError;
}

describe("loading", () => {
  test("rows come from bytes, Blobs, servers, paths and URLs of files, and are the same", async () => {
    const folder = mkdtempSync(join(tmpdir(), "weighbridge-"));
    writeFileSync(join(folder, "cards.i8bin"), bytes);
    writeFileSync(join(folder, "meta.json"), JSON.stringify(meta));
    const { buffer } = bytes;
    const all = await Promise.all([
      loadEmbeddings(buffer, meta),
      loadEmbeddings(bytes, meta),
      loadEmbeddings(new Blob([bytes]), new Blob([JSON.stringify(meta)])),
      loadEmbeddings(`${origin}/cards.i8bin`, `${origin}/meta.json`),
      loadEmbeddings(new URL(`${origin}/chunked`), meta),
      loadEmbeddings(join(folder, "cards.i8bin"), join(folder, "meta.json")),
      loadEmbeddings(new URL(`file://${folder}/cards.i8bin`), meta),
      loadEmbeddings(`${origin}/chunked`, undefined, { dimensions: 64 }),
    ]);
    for (const embeddings of all) {
      expect([embeddings.count, embeddings.dimensions, embeddings.length]).toEqual([300, 64, 19200]);
      expect(Buffer.from(embeddings.codes).equals(Buffer.from(buffer))).toBe(true);
    }
    expect(all[2]?.record(7)).toEqual(meta.records?.[7]);
    expect(all[7]?.record(7)).toBeUndefined();
    for (const embeddings of all) {
      embeddings.close();
    }
  });

  test("without a description rows have 512 values", async () => {
    const { bytes } = cards(3, 512);
    const embeddings = await loadEmbeddings(bytes);
    expect([embeddings.count, embeddings.dimensions]).toEqual([3, 512]);
    expect(embeddings.row(2)).toEqual(dequantize(new Int8Array(bytes.buffer, 1024, 512)));
    expect(embeddings.dequantize()).toEqual(dequantize(embeddings));
    expect(() => embeddings.row(3)).toThrow("there is no row 3; there are 3");
    const empty = await loadEmbeddings(new ArrayBuffer(0));
    expect(empty.count).toBe(0);
    expect(empty.search(new Float32Array(512).fill(1), 3)).toEqual([]);
  });

  test("progress is told, and an aborted signal ends it", async () => {
    const seen: number[] = [];
    const total = { size: 0 };
    const onProgress = (progress: { loaded: number; total: number | undefined }) => {
      seen.push(progress.loaded);
      total.size = progress.total ?? 0;
    };
    await loadEmbeddings(`${origin}/cards.i8bin`, meta, { onProgress });
    expect(seen.at(-1)).toBe(19200);
    expect(total.size).toBe(19200);
    const aborted = AbortSignal.abort();
    await expect(loadEmbeddings(`${origin}/cards.i8bin`, meta, { signal: aborted })).rejects.toThrow("aborted");
    const controller = new AbortController();
    const stopping = loadEmbeddings(`${origin}/cards.i8bin`, meta, {
      signal: controller.signal,
      onProgress: () => controller.abort(),
    });
    await expect(stopping).rejects.toMatchObject({ name: "AbortError" });
  });
});

describe("the specification's errors", () => {
  test("a size that does not fit", async () => {
    const error = await failure(loadEmbeddings(bytes.slice(0, 19199), meta));
    expect(error.message).toBe(
      "Embedding file size mismatch: expected 19200 bytes (300 cards × 64 dims), got 19199 bytes. " +
        "Re-export embeddings using export_for_browser.py",
    );
    expect([error.kind, error.rule]).toEqual(["malformed", "I8-01"]);
    // Also where nothing tells the size before the end.
    const shape = [301, 64] as const;
    const late = await failure(loadEmbeddings(`${origin}/chunked`, { ...meta, shape }));
    expect(late.message).toContain("expected 19264 bytes (301 cards × 64 dims), got 19200 bytes");
    const alone = await failure(loadEmbeddings(new ArrayBuffer(513)));
    expect(alone.message).toContain("expected 1024 bytes (2 cards × 512 dims), got 513 bytes");
  });

  test("a value out of range", async () => {
    const damaged = bytes.slice();
    damaged[5042] = 128;
    const error = await failure(loadEmbeddings(damaged, meta));
    expect(error.message).toBe(
      "Invalid int8 value at index 5042: -128. Values must be in range [-127, 127]. " +
        "File may be corrupted or not in int8 format",
    );
    expect(error.rule).toBe("I8-11");
  });

  test("a norm out of range", async () => {
    const short = bytes.map((code, i) => (i >= 640 && i < 704 ? Math.trunc(((code << 24) >> 24) * 0.85) : code));
    const error = await failure(loadEmbeddings(short, meta));
    expect(error.message).toMatch(
      /^L2 norm out of expected range: 0\.8\d+\. Expected approximately 1\.0 \(within ±0\.008\)\. Check quantization parameters\. Check that source embeddings were L2-normalized before quantization$/,
    );
    expect([error.rule, error.report.field]).toEqual(["I8-14", "row 10"]);
    await loadEmbeddings(short, meta, { norms: false });
    await loadEmbeddings(short, meta, { norms: [0.8, 1.02] });
    const slightly = await failure(loadEmbeddings(bytes, meta, { norms: [1.5, 2] }));
    expect(slightly.rule).toBe("I8-14");
    expect(STRICT_NORMS).toEqual([0.992, 1.008]);
  });

  test("a file that is not there", async () => {
    const error = await failure(loadEmbeddings(`${origin}/nothing.i8bin`, meta));
    expect(error.message).toBe(`Failed to load embeddings: 404 Not Found. Check that ${origin}/nothing.i8bin exists`);
    expect(error.kind).toBe("not-found");
    expect((await failure(loadEmbeddings("/no/such/file.i8bin"))).kind).toBe("not-found");
    expect((await failure(loadEmbeddings(bytes, `${origin}/nothing.json`))).kind).toBe("not-found");
    expect((await failure(loadEmbeddings("http://127.0.0.1:1/x.i8bin"))).kind).toBe("io");
  });

  test("the retired float16 export is refused, with what to do about it", async () => {
    const float16 = { ...meta, quantization: { dtype: "float16" } };
    const list = meta.records as unknown as Meta;
    for (const work of [
      loadEmbeddings(new ArrayBuffer(38400), meta),
      loadEmbeddings(new ArrayBuffer(38400), float16),
      loadEmbeddings(new ArrayBuffer(38400), list),
    ]) {
      const error = await failure(work);
      expect(error.rule).toBe("I8-06");
      expect(error.message).toContain("legacy float16 export");
      expect(error.message).toContain("Re-export embeddings using export_for_browser.py");
      expect(error.message).toContain("Documentation: docs/browser.md#the-retired-float16-export");
    }
  });

  test("a description that makes no sense", async () => {
    const rule = async (meta: unknown) => (await failure(loadEmbeddings(bytes, meta as Meta))).rule;
    expect(await rule(new Blob(["{"]))).toBe("I8-05");
    expect(await rule(new Blob(["null"]))).toBe("I8-05");
    expect(await rule({ ...meta, records: {} })).toBe("I8-05");
    expect(await rule({ ...meta, records: meta.records?.slice(1) })).toBe("I8-10");
    expect(await rule({ ...meta, shape: [300] })).toBe("I8-02");
    expect(await rule({ ...meta, shape: [300, 0] })).toBe("I8-02");
    expect(await rule({ ...meta, quantization: { dtype: "float32" } })).toBe("I8-09");
    expect(await rule({ ...meta, quantization: { scale_factor: 128 } })).toBe("I8-09");
  });
});

describe("searching", () => {
  test("the nearest rows are those of the definition, for every metric", async () => {
    const embeddings = await loadEmbeddings(bytes, meta);
    const values = embeddings.dequantize();
    const queries = [3, 77, 299].map((row) => embeddings.row(row).map((v, i) => v + Math.sin(i * row) / 50));
    for (const metric of ["cosine", "dot", "l2"] as const) {
      const found = embeddings.searchBatch(queries, 10, { metric });
      queries.forEach((query, i) => {
        const expected = nearest(values, 64, query, 10, metric);
        expect(found[i]?.map((hit) => hit.row)).toEqual(expected.map((hit) => hit.row));
        found[i]?.forEach((hit, n) => {
          expect(hit.score).toBeCloseTo(expected[n]?.score as number, 5);
          expect(hit.record).toEqual(meta.records?.[hit.row]);
        });
        expect(embeddings.search(query, 10, { metric })).toEqual(found[i]);
      });
    }
  });

  test("filters choose among which rows", async () => {
    const embeddings = await loadEmbeddings(bytes, meta);
    const query = embeddings.row(12);
    const isRed = (record: Record<string, unknown> | undefined) => record?.colour === "red";
    const found = embeddings.search(query, 5, { filter: isRed });
    expect(found).toHaveLength(5);
    expect(found.every((hit) => isRed(hit.record))).toBe(true);
    const all = embeddings.search(query, 300).filter((hit) => isRed(hit.record));
    expect(found).toEqual(all.slice(0, 5));
    const rows = Uint32Array.of(5, 9, 1000);
    expect(
      embeddings
        .search(query, 2, { filter: rows })
        .map((hit) => hit.row)
        .sort(),
    ).toEqual([5, 9]);
    expect(embeddings.search(query, 5, { filter: () => false })).toEqual([]);
  });

  test("what can't be asked is refused", async () => {
    const embeddings = await loadEmbeddings(bytes, meta);
    const zeros = new Float32Array(64);
    expect(() => embeddings.search(new Float32Array(63), 5)).toThrow("the query has 63 values, and the rows have 64");
    expect(() => embeddings.search(zeros, 5)).toThrow("the query is zero");
    expect(() => embeddings.search(zeros.fill(Number.NaN), 5)).toThrow("the query holds NaN in column 0");
    expect(() => embeddings.search(embeddings.row(0), 0)).toThrow("0 hits were asked for");
    expect(() => embeddings.search(embeddings.row(0), 5, { metric: "x" as "dot" })).toThrow('no metric "x"');
    expect(embeddings.search(embeddings.row(0), 1000)).toHaveLength(300);
  });
});
