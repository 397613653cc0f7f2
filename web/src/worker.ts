/** Rows that are loaded and searched in a Worker: the same functions as of the package, which promise. */
import "./platform-web.js";
import { type EmbeddingsOptions, type Hit, rowsOf, type SearchOptions } from "./embeddings.js";
import type { Engine } from "./engine.js";
import type { CardRecord, Meta } from "./meta.js";
import { type Loadable, platform } from "./platform.js";

export * from "./api.js";

/** Rows of int8 in the memory of a Worker. Records are here. */
export class WorkerEmbeddings {
  readonly count: number;
  readonly dimensions: number;
  readonly records: readonly CardRecord[] | undefined;
  readonly #engine: Engine;
  readonly #handle: number;

  /** Made by `loadEmbeddings`. */
  constructor(engine: Engine, loaded: Loaded) {
    this.#engine = engine;
    this.#handle = loaded.handle;
    this.count = loaded.count;
    this.dimensions = loaded.dimensions;
    this.records = loaded.records;
  }

  /** The values of a row. */
  row(row: number): Promise<Float32Array<ArrayBuffer>> {
    return this.#engine.call("row", [this.#handle, row]) as Promise<Float32Array<ArrayBuffer>>;
  }

  /** What is known of a row. */
  record(row: number): CardRecord | undefined {
    return this.records?.[row];
  }

  /** The values of all rows: four bytes each. */
  dequantize(): Promise<Float32Array<ArrayBuffer>> {
    return this.#engine.call("dequantize", [this.#handle]) as Promise<Float32Array<ArrayBuffer>>;
  }

  /** The `k` nearest rows of a vector, exactly. */
  async search(query: Float32Array | readonly number[], k = 10, options: SearchOptions = {}): Promise<Hit[]> {
    return (await this.searchBatch([query], k, options))[0] ?? [];
  }

  /** The same for several vectors. */
  async searchBatch(
    queries: readonly (Float32Array | readonly number[])[],
    k = 10,
    options: SearchOptions = {},
  ): Promise<Hit[][]> {
    const { filter, ...rest } = options;
    // Records are here, and functions can't be sent.
    const among = rowsOf(filter, this.count, this.records);
    const sent = among === undefined ? rest : { ...rest, filter: among };
    const found = (await this.#engine.call("search", [this.#handle, queries, k, sent])) as Hit[][];
    return found.map((hits) => hits.map((hit) => ({ ...hit, record: this.records?.[hit.row] })));
  }

  /** Gives the memory back. */
  async close(): Promise<void> {
    await this.#engine.call("close", [this.#handle]);
  }
}

interface Loaded {
  handle: number;
  count: number;
  dimensions: number;
  records: readonly CardRecord[] | undefined;
}

/** Loads rows of int8 into a Worker. */
export async function loadEmbeddings(
  from: Loadable,
  meta?: Loadable | Meta,
  options: EmbeddingsOptions = {},
): Promise<WorkerEmbeddings> {
  const engine = await platform().engine();
  const { signal, onProgress, ...rest } = options;
  const args = [engine.place(from), engine.place(meta), rest];
  const loaded = await engine.call("loadEmbeddings", args, { signal, onProgress });
  return new WorkerEmbeddings(engine, loaded as Loaded);
}
