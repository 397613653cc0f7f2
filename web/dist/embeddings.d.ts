import { type LoadOptions } from "./fetching.js";
import { type CardRecord, type Meta } from "./meta.js";
import { type Loadable } from "./platform.js";
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
export declare const STRICT_NORMS: readonly [0.992, 1.008];
/** Rows of int8 in the memory of WebAssembly, with what is known of each; `loadEmbeddings` makes them. */
export declare class Embeddings {
    #private;
    readonly count: number;
    readonly dimensions: number;
    /** What is known of each row, if there was a `meta.json`. */
    readonly records: readonly CardRecord[] | undefined;
    private constructor();
    /** How many values there are. */
    get length(): number;
    /** How many bytes of memory WebAssembly has for all rows that are loaded. */
    get memory(): number;
    /**
     * The codes of all rows, where they are. Loading something else may move the memory, so that this is
     * asked for anew each time.
     */
    get codes(): Int8Array;
    /** The values of a row. */
    row(row: number): Float32Array<ArrayBuffer>;
    /** What is known of a row. */
    record(row: number): CardRecord | undefined;
    /** The values of all rows: four bytes each. A search does not need it. */
    dequantize(): Float32Array<ArrayBuffer>;
    /** The `k` nearest rows of a vector, exactly. */
    search(query: Float32Array | readonly number[], k?: number, options?: SearchOptions): Hit[];
    /** The same for several vectors. */
    searchBatch(queries: readonly (Float32Array | readonly number[])[], k?: number, options?: SearchOptions): Hit[][];
    /** Gives the memory back. */
    close(): void;
}
/** The rows that may be found; all without a filter. */
export declare function rowsOf(filter: SearchOptions["filter"], count: number, records: readonly CardRecord[] | undefined): Uint32Array | undefined;
/** The values that codes stand for, as the specification has it. */
export declare function dequantize(codes: Int8Array | Embeddings): Float32Array<ArrayBuffer>;
/**
 * Loads rows of int8: an `.i8bin`, and the `meta.json` that tells their shape and records. Without one rows
 * have the specification's 512 values. They are checked as the specification says, with its messages.
 */
export declare function loadEmbeddings(from: Loadable, meta?: Loadable | Meta, options?: EmbeddingsOptions): Promise<Embeddings>;
/** What is refused here is what the program refuses. */
export declare function checkQuery(query: Float32Array | readonly number[], dimensions: number, metric: Metric): void;
