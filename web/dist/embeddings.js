import { native, WeighbridgeError } from "./errors.js";
import { joined, load, loadText } from "./fetching.js";
import { broken, checkMeta, wrongSize } from "./meta.js";
import { Int8Rows, initSync } from "./native/search.js";
import { compile, once } from "./platform.js";
/** The specification's own range of norms. */
export const STRICT_NORMS = [0.992, 1.008];
const USUAL_NORMS = [0.98, 1.02];
/** What the specification fixes. */
const USUAL_DIMENSIONS = 512;
const wasm = once(async () => initSync({ module: await compile("search") }));
/** Rows of int8 in the memory of WebAssembly, with what is known of each; `loadEmbeddings` makes them. */
export class Embeddings {
    count;
    dimensions;
    /** What is known of each row, if there was a `meta.json`. */
    records;
    #rows;
    #memory;
    constructor({ rows, memory, shape, records }) {
        [this.count, this.dimensions] = shape;
        this.#rows = rows;
        this.#memory = memory;
        this.records = records;
    }
    /** @internal */
    static of(made) {
        return new Embeddings(made);
    }
    /** How many values there are. */
    get length() {
        return this.count * this.dimensions;
    }
    /** How many bytes of memory WebAssembly has for all rows that are loaded. */
    get memory() {
        return this.#memory.buffer.byteLength;
    }
    /**
     * The codes of all rows, where they are. Loading something else may move the memory, so that this is
     * asked for anew each time.
     */
    get codes() {
        return new Int8Array(this.#memory.buffer, this.#rows.address, this.length);
    }
    /** The values of a row. */
    row(row) {
        this.#check(row);
        return dequantize(this.codes.subarray(row * this.dimensions, (row + 1) * this.dimensions));
    }
    /** What is known of a row. */
    record(row) {
        this.#check(row);
        return this.records?.[row];
    }
    /** The values of all rows: four bytes each. A search does not need it. */
    dequantize() {
        return dequantize(this.codes);
    }
    /** The `k` nearest rows of a vector, exactly. */
    search(query, k = 10, options = {}) {
        return this.searchBatch([query], k, options)[0] ?? [];
    }
    /** The same for several vectors. */
    searchBatch(queries, k = 10, options = {}) {
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
            const hit = (_, n) => {
                const at = (i * most + n) * 2;
                const row = found[at];
                return { row, score: found[at + 1], record: this.records?.[row] };
            };
            return Array.from({ length: most }, hit);
        });
    }
    /** Gives the memory back. */
    close() {
        this.#rows.free();
    }
    #check(row) {
        if (!Number.isInteger(row) || row < 0 || row >= this.count) {
            const message = `there is no row ${row}; there are ${this.count}`;
            throw new WeighbridgeError({ kind: "not-found", message, hint: "rows are counted from 0" });
        }
    }
}
/** The rows that may be found; all without a filter. */
export function rowsOf(filter, count, records) {
    if (typeof filter !== "function") {
        return filter;
    }
    const rows = [];
    for (let row = 0; row < count; row++) {
        if (filter(records?.[row], row)) {
            rows.push(row);
        }
    }
    return Uint32Array.from(rows);
}
/** The values that codes stand for, as the specification has it. */
export function dequantize(codes) {
    const all = codes instanceof Embeddings ? codes.codes : codes;
    const values = new Float32Array(all.length);
    for (let i = 0; i < all.length; i++) {
        values[i] = all[i] / 127;
    }
    return values;
}
/**
 * Loads rows of int8: an `.i8bin`, and the `meta.json` that tells their shape and records. Without one rows
 * have the specification's 512 values. They are checked as the specification says, with its messages.
 */
export async function loadEmbeddings(from, meta, options = {}) {
    const starting = Promise.all([load(from, options, "embeddings"), wasm()]);
    // It is waited for below; whichever fails first is told.
    starting.catch(() => { });
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
    }
    finally {
        arriving.stop();
    }
}
async function readMeta(meta, options) {
    const isPlace = typeof meta === "string" || meta instanceof URL || meta instanceof Blob;
    if (!isPlace && !(meta instanceof ArrayBuffer) && !ArrayBuffer.isView(meta)) {
        return checkMeta(meta);
    }
    const text = await loadText(meta, options, "the description of embeddings");
    try {
        return checkMeta(JSON.parse(text));
    }
    catch (cause) {
        if (cause instanceof WeighbridgeError) {
            throw cause;
        }
        const message = `meta.json is malformed: ${cause instanceof Error ? cause.message : String(cause)}`;
        throw broken("I8-05", message, { field: "meta.json" });
    }
}
/** Puts the bytes into the memory of WebAssembly as they arrive, which is the one place where they are. */
async function receive(arriving, stated, dimensions, memory) {
    const dim = dimensions ?? stated?.[1] ?? USUAL_DIMENSIONS;
    const shapeOf = (size) => [Math.ceil(size / dim), dim];
    let { size, pieces } = arriving;
    if (size === undefined && stated === undefined) {
        // Nothing tells how much will come.
        const all = [];
        for await (const piece of pieces) {
            all.push(piece);
        }
        const bytes = joined(all);
        size = bytes.length;
        pieces = (async function* () {
            yield bytes;
        })();
    }
    const shape = stated === undefined || dimensions !== undefined ? shapeOf(size ?? 0) : [stated[0], dim];
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
function check(rows, shape, range) {
    const invalid = rows.firstInvalid();
    if (invalid !== undefined) {
        rows.free();
        const message = `Invalid int8 value at index ${invalid}: -128. Values must be in range [-127, 127]. ` +
            "File may be corrupted or not in int8 format";
        throw broken("I8-11", message, { start: invalid, end: invalid + 1, found: "-128" });
    }
    if (range === false) {
        return;
    }
    const [low, high] = range;
    const row = rows.norms().findIndex((norm) => !(norm >= low && norm <= high));
    if (row !== -1) {
        const norm = rows.norms()[row];
        rows.free();
        const message = `L2 norm out of expected range: ${norm}. Expected approximately 1.0 (within ±0.008). ` +
            "Check quantization parameters. Check that source embeddings were L2-normalized before quantization";
        const [start, end] = [row * shape[1], (row + 1) * shape[1]];
        throw broken("I8-14", message, { field: `row ${row}`, start, end, found: String(norm) });
    }
}
/** What is refused here is what the program refuses. */
export function checkQuery(query, dimensions, metric) {
    const refuse = (message, hint) => new WeighbridgeError({ kind: "refused", message, field: "query", ...(hint === undefined ? {} : { hint }) });
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
function checkCount(k) {
    if (!Number.isInteger(k) || k < 1) {
        throw new WeighbridgeError({ kind: "refused", message: `${k} hits were asked for`, field: "k" });
    }
    return k;
}
