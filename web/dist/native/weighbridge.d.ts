/* tslint:disable */
/* eslint-disable */

/**
 * An open file.
 */
export class Container {
    private constructor();
    free(): void;
    [Symbol.dispose](): void;
    /**
     * The files that it becomes in another format.
     */
    convert(request: string): Converted;
    /**
     * The record of a row, a JSON object.
     */
    record(row: number): string | undefined;
    /**
     * Statistics of a tensor as JSON, null if it has no values.
     */
    stats(name: string): string;
    /**
     * What `inspect --json` prints, with what every byte is if `regions`.
     */
    summary(regions: boolean): string;
    /**
     * The values of some rows of a tensor.
     */
    values(name: string, start?: number | null, end?: number | null): Values;
    /**
     * All tokens or words, as a JSON array, or null.
     */
    vocabulary(): string;
}

/**
 * A file in another format.
 */
export class Converted {
    private constructor();
    free(): void;
    [Symbol.dispose](): void;
    /**
     * The bytes of a file. They can be taken once.
     */
    takeFile(index: number): Uint8Array;
    /**
     * What became of it, as JSON.
     */
    readonly report: string;
}

/**
 * A model that is ready.
 */
export class TextModel {
    free(): void;
    [Symbol.dispose](): void;
    /**
     * The vectors of texts, one behind the other.
     */
    embed(texts: string[], prompting: string): Float32Array;
    /**
     * The model in a file.
     */
    constructor(container: Container, compute: string);
    /**
     * The numbers of a text's tokens.
     */
    tokenize(text: string): Uint32Array;
    /**
     * How many values a vector has.
     */
    readonly dimensions: number;
    /**
     * The most tokens of a text that count.
     */
    readonly maxTokens: number;
}

/**
 * Values of a type that JavaScript has arrays of.
 */
export class Values {
    private constructor();
    free(): void;
    [Symbol.dispose](): void;
    /**
     * The values, little-endian. They can be taken once.
     */
    takeBytes(): Uint8Array;
    /**
     * The name of the type.
     */
    readonly dtype: string;
    /**
     * How many there are in each dimension.
     */
    readonly shape: Float64Array;
}

/**
 * Opens what is described as JSON.
 */
export function openContainer(described: string, options: string): Container;

export function start(): void;

/**
 * Holds a file against every rule of its format: the verdict as JSON.
 */
export function verifyContainer(described: string, options: string, quick: boolean): string;

export type InitInput = RequestInfo | URL | Response | BufferSource | WebAssembly.Module;

export interface InitOutput {
    readonly memory: WebAssembly.Memory;
    readonly __wbg_container_free: (a: number, b: number) => void;
    readonly __wbg_converted_free: (a: number, b: number) => void;
    readonly __wbg_textmodel_free: (a: number, b: number) => void;
    readonly __wbg_values_free: (a: number, b: number) => void;
    readonly container_convert: (a: number, b: number, c: number) => [number, number, number];
    readonly container_record: (a: number, b: number) => [number, number, number, number];
    readonly container_stats: (a: number, b: number, c: number) => [number, number, number, number];
    readonly container_summary: (a: number, b: number) => [number, number, number, number];
    readonly container_values: (a: number, b: number, c: number, d: number, e: number, f: number, g: number) => [number, number, number];
    readonly container_vocabulary: (a: number) => [number, number, number, number];
    readonly converted_report: (a: number) => [number, number];
    readonly converted_takeFile: (a: number, b: number) => [number, number];
    readonly openContainer: (a: number, b: number, c: number, d: number) => [number, number, number];
    readonly start: () => void;
    readonly textmodel_dimensions: (a: number) => number;
    readonly textmodel_embed: (a: number, b: number, c: number, d: number, e: number) => [number, number, number, number];
    readonly textmodel_maxTokens: (a: number) => number;
    readonly textmodel_new: (a: number, b: number, c: number) => [number, number, number];
    readonly textmodel_tokenize: (a: number, b: number, c: number) => [number, number];
    readonly values_dtype: (a: number) => [number, number];
    readonly values_shape: (a: number) => [number, number];
    readonly values_takeBytes: (a: number) => [number, number];
    readonly verifyContainer: (a: number, b: number, c: number, d: number, e: number) => [number, number, number, number];
    readonly __wbindgen_malloc: (a: number, b: number) => number;
    readonly __wbindgen_realloc: (a: number, b: number, c: number, d: number) => number;
    readonly __wbindgen_free: (a: number, b: number, c: number) => void;
    readonly __externref_table_alloc: () => number;
    readonly __wbindgen_externrefs: WebAssembly.Table;
    readonly __externref_drop_slice: (a: number, b: number) => void;
    readonly __wbindgen_exn_store: (a: number) => void;
    readonly __externref_table_dealloc: (a: number) => void;
    readonly __wbindgen_start: () => void;
}

export type SyncInitInput = BufferSource | WebAssembly.Module;

/**
 * Instantiates the given `module`, which can either be bytes or
 * a precompiled `WebAssembly.Module`.
 *
 * @param {{ module: SyncInitInput }} module - Passing `SyncInitInput` directly is deprecated.
 *
 * @returns {InitOutput}
 */
export function initSync(module: { module: SyncInitInput } | SyncInitInput): InitOutput;

/**
 * If `module_or_path` is {RequestInfo} or {URL}, makes a request and
 * for everything else, calls `WebAssembly.instantiate` directly.
 *
 * @param {{ module_or_path: InitInput | Promise<InitInput> }} module_or_path - Passing `InitInput` directly is deprecated.
 *
 * @returns {Promise<InitOutput>}
 */
export default function __wbg_init (module_or_path: { module_or_path: InitInput | Promise<InitInput> } | InitInput | Promise<InitInput>): Promise<InitOutput>;
