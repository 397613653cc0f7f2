/* tslint:disable */
/* eslint-disable */

/**
 * The rows of a file. Their bytes are put into this memory by JavaScript, as they arrive.
 */
export class Int8Rows {
    free(): void;
    [Symbol.dispose](): void;
    /**
     * The index of the first code that is none: -128.
     */
    firstInvalid(): number | undefined;
    /**
     * Room for so many rows of so many values, and nothing but zeros yet.
     */
    constructor(count: number, dim: number);
    /**
     * The length of each row's vector.
     */
    norms(): Float64Array;
    /**
     * The `k` nearest rows of each of some queries, which are one behind the other: row and score of
     * one hit after the other. `among` are the rows that may be found, all without it.
     */
    search(queries: Float32Array | number[], k: number, metric: string, among?: Uint32Array | number[] | null): Float64Array;
    /**
     * Where the codes are in memory.
     */
    readonly address: number;
}

export type InitInput = RequestInfo | URL | Response | BufferSource | WebAssembly.Module;

export interface InitOutput {
    readonly memory: WebAssembly.Memory;
    readonly __wbg_int8rows_free: (a: number, b: number) => void;
    readonly int8rows_address: (a: number) => number;
    readonly int8rows_firstInvalid: (a: number) => number;
    readonly int8rows_new: (a: number, b: number) => [number, number, number];
    readonly int8rows_norms: (a: number) => [number, number];
    readonly int8rows_search: (a: number, b: number, c: number, d: number, e: number, f: number, g: number, h: number) => [number, number, number, number];
    readonly __wbindgen_externrefs: WebAssembly.Table;
    readonly __externref_table_dealloc: (a: number) => void;
    readonly __wbindgen_free: (a: number, b: number, c: number) => void;
    readonly __wbindgen_malloc: (a: number, b: number) => number;
    readonly __wbindgen_realloc: (a: number, b: number, c: number, d: number) => number;
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
