import { native, WeighbridgeError } from "./errors.js";
import { type Arriving, joined, type LoadOptions, load, loadText } from "./fetching.js";
import { broken, type CardRecord, checkMeta, type Meta, wrongSize } from "./meta.js";
import { type InitOutput, Int8Rows, initSync } from "./native/search.js";
import { compile, type Loadable, once } from "./platform.js";

/** What makes a row near. The cosine is the specification's dot product, of vectors at length 1. */
export type Metric = "cosine" | "dot" | "l2";

export interface EmbeddingsOptions extends LoadOptions {
  /** Values of a row, where no `meta.json` says it. */
  dimensions?: number;
  /**
   * Between which lengths a row's vector must be. Without it rows outside of 0.98 to 1.02 are refused, as
   * `weighbridge verify` does, because rounding leaves a few outside of the specification's 0.992 to
   * 1.008; `STRICT_NORMS` are these. `false` takes any, such as those that the original script cuts short.
   */
  norms?: readonly [number, number] | false;
}

export interface SearchOptions {
  /** Only rows for which it is true are found, or only these. */
  filter?: ((record: CardRecord | undefined, row: number) => boolean) | Uint32Array;
  metric?: Metric;
}

/** A row that was found; the nearest come first, of equal ones the lower. */
export interface Hit {
  row: number;
  score: number;
  record: CardRecord | undefined;
}

/** The specification's own range of norms. */
export const STRICT_NORMS = [0.992, 1.008] as const;
const USUAL_NORMS = [0.98, 1.02] as const;
/** What the specification fixes. */
const USUAL_DIMENSIONS = 512;

const wasm = once(async (): Promise<InitOutput> => initSync({ module: await compile("search") }));

/** What `loadEmbeddings` has found. */
interface Made {
  rows: Int8Rows;
  memory: WebAssembly.Memory;
  shape: readonly [number, number];
  records: readonly CardRecord[] | undefined;
}

/** Rows of int8 in the memory of WebAssembly, with what is known of each; `loadEmbeddings` makes them. */
export class Embeddings {
  readonly count: number;
  readonly dimensions: number;
  /** What is known of each row, if there was a `meta.json`. */
  readonly records: readonly CardRecord[] | undefined;
  readonly #rows: Int8Rows;
  readonly #memory: WebAssembly.Memory;

  private constructor({ rows, memory, shape, records }: Made) {
    [this.count, this.dimensions] = shape;
    this.#rows = rows;
    this.#memory = memory;
    this.records = records;
  }

  /** @internal */
  static of(made: Made): Embeddings {
    return new Embeddings(made);
  }

  /** How many values there are. */
  get length(): number {
    return this.count * this.dimensions;
  }

  /** How many bytes of memory WebAssembly has for all rows that are loaded. */
  get memory(): number {
    return this.#memory.buffer.byteLength;
  }

  /**
   * The codes of all rows, where they are. Loading something else may move the memory, so that this is
   * asked for anew each time.
   */
  get codes(): Int8Array {
    return new Int8Array(this.#memory.buffer, this.#rows.address, this.length);
  }

  /** The values of a row. */
  row(row: number): Float32Array<ArrayBuffer> {
    this.#check(row);
    return dequantize(this.codes.subarray(row * this.dimensions, (row + 1) * this.dimensions));
  }

  /** What is known of a row. */
  record(row: number): CardRecord | undefined {
    this.#check(row);
    return this.records?.[row];
  }

  /** The values of all rows: four bytes each. A search does not need it. */
  dequantize(): Float32Array<ArrayBuffer> {
    return dequantize(this.codes);
  }

  /** The `k` nearest rows of a vector, exactly. */
  search(query: Float32Array | readonly number[], k = 10, options: SearchOptions = {}): Hit[] {
    return this.searchBatch([query], k, options)[0] ?? [];
  }

  /** The same for several vectors. */
  searchBatch(queries: readonly (Float32Array | readonly number[])[], k = 10, options: SearchOptions = {}): Hit[][] {
    const metric = options.metric ?? "cosine";
    const all = new Float32Array(queries.length * this.dimensions);
    queries.forEach((query, i) => {
      checkQuery(query, this.dimensions, metric);
      all.set(query, i * this.dimensions);
    });
    const among = rowsOf(options.filter, this.count, this.records);
    const most = Math.min(checkCount(k), among?.length ?? this.count);
    const found = native(() => this.#rows.search(all, most, metric, among));
    return queries.map((_, i) => {
      const hit = (_: unknown, n: number): Hit => {
        const at = (i * most + n) * 2;
        const row = found[at] as number;
        return { row, score: found[at + 1] as number, record: this.records?.[row] };
      };
      return Array.from({ length: most }, hit);
    });
  }

  /** Gives the memory back. */
  close(): void {
    this.#rows.free();
  }

  #check(row: number): void {
    if (!Number.isInteger(row) || row < 0 || row >= this.count) {
      const message = `there is no row ${row}; there are ${this.count}`;
      throw new WeighbridgeError({ kind: "not-found", message, hint: "rows are counted from 0" });
    }
  }
}

/** The rows that may be found; all without a filter. */
export function rowsOf(
  filter: SearchOptions["filter"],
  count: number,
  records: readonly CardRecord[] | undefined,
): Uint32Array | undefined {
  if (typeof filter !== "function") {
    return filter;
  }
  const rows: number[] = [];
  for (let row = 0; row < count; row++) {
    if (filter(records?.[row], row)) {
      rows.push(row);
    }
  }
  return Uint32Array.from(rows);
}

/** The values that codes stand for, as the specification has it. */
export function dequantize(codes: Int8Array | Embeddings): Float32Array<ArrayBuffer> {
  const all = codes instanceof Embeddings ? codes.codes : codes;
  const values = new Float32Array(all.length);
  for (let i = 0; i < all.length; i++) {
    values[i] = (all[i] as number) / 127;
  }
  return values;
}

/**
 * Loads rows of int8: an `.i8bin`, and the `meta.json` that tells their shape and records. Without one rows
 * have the specification's 512 values. They are checked as the specification says, with its messages.
 */
export async function loadEmbeddings(
  from: Loadable,
  meta?: Loadable | Meta,
  options: EmbeddingsOptions = {},
): Promise<Embeddings> {
  const starting = Promise.all([load(from, options, "embeddings"), wasm()]);
  // It is waited for below; whichever fails first is told.
  starting.catch(() => {});
  const known = meta === undefined ? undefined : await readMeta(meta, options);
  const [arriving, { memory }] = await starting;
  try {
    const { rows, shape } = await receive(arriving, known?.shape, options.dimensions, memory);
    check(rows, shape, options.norms ?? USUAL_NORMS);
    const records = known?.records;
    if (records !== undefined && records.length !== shape[0]) {
      const message = `the number of records is not the number of rows: ${records.length} records for ${shape[0]} rows`;
      throw broken("I8-10", message, { field: "meta.json records" });
    }
    return Embeddings.of({ rows, memory, shape, records });
  } finally {
    arriving.stop();
  }
}

async function readMeta(meta: Loadable | Meta, options: EmbeddingsOptions): Promise<Meta> {
  const isPlace = typeof meta === "string" || meta instanceof URL || meta instanceof Blob;
  if (!isPlace && !(meta instanceof ArrayBuffer) && !ArrayBuffer.isView(meta)) {
    return checkMeta(meta);
  }
  const text = await loadText(meta, options, "the description of embeddings");
  try {
    return checkMeta(JSON.parse(text));
  } catch (cause) {
    if (cause instanceof WeighbridgeError) {
      throw cause;
    }
    const message = `meta.json is malformed: ${cause instanceof Error ? cause.message : String(cause)}`;
    throw broken("I8-05", message, { field: "meta.json" });
  }
}

/** Puts the bytes into the memory of WebAssembly as they arrive, which is the one place where they are. */
async function receive(
  arriving: Arriving,
  stated: Meta["shape"],
  dimensions: number | undefined,
  memory: WebAssembly.Memory,
): Promise<{ rows: Int8Rows; shape: readonly [number, number] }> {
  const dim = dimensions ?? stated?.[1] ?? USUAL_DIMENSIONS;
  const shapeOf = (size: number) => [Math.ceil(size / dim), dim] as const;
  let { size, pieces } = arriving;
  if (size === undefined && stated === undefined) {
    // Nothing tells how much will come.
    const all: Uint8Array[] = [];
    for await (const piece of pieces) {
      all.push(piece);
    }
    const bytes = joined(all);
    size = bytes.length;
    pieces = (async function* () {
      yield bytes;
    })();
  }
  const shape =
    stated === undefined || dimensions !== undefined ? shapeOf(size ?? 0) : ([stated[0] as number, dim] as const);
  const room = shape[0] * dim;
  if (size !== undefined && size !== room) {
    throw wrongSize(shape[0], dim, size);
  }
  const rows = native(() => new Int8Rows(shape[0], dim));
  let at = 0;
  for await (const piece of pieces) {
    if (at + piece.length <= room) {
      new Uint8Array(memory.buffer, rows.address + at, piece.length).set(piece);
    }
    at += piece.length;
  }
  if (at !== room) {
    rows.free();
    throw wrongSize(shape[0], dim, at);
  }
  return { rows, shape };
}

function check(rows: Int8Rows, shape: readonly [number, number], range: readonly [number, number] | false): void {
  const invalid = rows.firstInvalid();
  if (invalid !== undefined) {
    rows.free();
    const message =
      `Invalid int8 value at index ${invalid}: -128. Values must be in range [-127, 127]. ` +
      "File may be corrupted or not in int8 format";
    throw broken("I8-11", message, { start: invalid, end: invalid + 1, found: "-128" });
  }
  if (range === false) {
    return;
  }
  const [low, high] = range;
  const row = rows.norms().findIndex((norm) => !(norm >= low && norm <= high));
  if (row !== -1) {
    const norm = rows.norms()[row] as number;
    rows.free();
    const message =
      `L2 norm out of expected range: ${norm}. Expected approximately 1.0 (within ±0.008). ` +
      "Check quantization parameters. Check that source embeddings were L2-normalized before quantization";
    const [start, end] = [row * shape[1], (row + 1) * shape[1]];
    throw broken("I8-14", message, { field: `row ${row}`, start, end, found: String(norm) });
  }
}

/** What is refused here is what the program refuses. */
export function checkQuery(query: Float32Array | readonly number[], dimensions: number, metric: Metric): void {
  const refuse = (message: string, hint?: string) =>
    new WeighbridgeError({ kind: "refused", message, field: "query", ...(hint === undefined ? {} : { hint }) });
  if (query.length !== dimensions) {
    const message = `the query has ${query.length} values, and the rows have ${dimensions}`;
    throw refuse(message, "queries and rows come of the same model");
  }
  const column = query.findIndex((value) => !Number.isFinite(value));
  if (column !== -1) {
    throw refuse(`the query holds ${Number.isNaN(query[column]) ? "NaN" : "an infinity"} in column ${column}`);
  }
  if (metric === "cosine" && query.every((value) => value === 0)) {
    throw refuse("the query is zero, and has an angle with nothing");
  }
}

function checkCount(k: number): number {
  if (!Number.isInteger(k) || k < 1) {
    throw new WeighbridgeError({ kind: "refused", message: `${k} hits were asked for`, field: "k" });
  }
  return k;
}
