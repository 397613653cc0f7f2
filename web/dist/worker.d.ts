/** Rows that are loaded and searched in a Worker: the same functions as of the package, which promise. */
import "./platform-web.js";
import { type EmbeddingsOptions, type Hit, type SearchOptions } from "./embeddings.js";
import type { Engine } from "./engine.js";
import type { CardRecord, Meta } from "./meta.js";
import { type Loadable } from "./platform.js";
export * from "./api.js";
/** Rows of int8 in the memory of a Worker. Records are here. */
export declare class WorkerEmbeddings {
    #private;
    readonly count: number;
    readonly dimensions: number;
    readonly records: readonly CardRecord[] | undefined;
    /** Made by `loadEmbeddings`. */
    constructor(engine: Engine, loaded: Loaded);
    /** The values of a row. */
    row(row: number): Promise<Float32Array<ArrayBuffer>>;
    /** What is known of a row. */
    record(row: number): CardRecord | undefined;
    /** The values of all rows: four bytes each. */
    dequantize(): Promise<Float32Array<ArrayBuffer>>;
    /** The `k` nearest rows of a vector, exactly. */
    search(query: Float32Array | readonly number[], k?: number, options?: SearchOptions): Promise<Hit[]>;
    /** The same for several vectors. */
    searchBatch(queries: readonly (Float32Array | readonly number[])[], k?: number, options?: SearchOptions): Promise<Hit[][]>;
    /** Gives the memory back. */
    close(): Promise<void>;
}
interface Loaded {
    handle: number;
    count: number;
    dimensions: number;
    records: readonly CardRecord[] | undefined;
}
/** Loads rows of int8 into a Worker. */
export declare function loadEmbeddings(from: Loadable, meta?: Loadable | Meta, options?: EmbeddingsOptions): Promise<WorkerEmbeddings>;
