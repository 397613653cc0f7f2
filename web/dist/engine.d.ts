import { type EmbeddingsOptions, type SearchOptions } from "./embeddings.js";
import type { LoadOptions } from "./fetching.js";
import type { Meta } from "./meta.js";
import { type Openable, type OpenOptions } from "./place.js";
import { type Loadable } from "./platform.js";
/** Where files are worked on: here, or in a Worker of the page. What it holds has numbers. */
export interface Engine {
    call(method: Method, args: readonly unknown[], options?: LoadOptions): Promise<unknown>;
    /** What is to be opened as it is called there: a Worker has another address than the page. */
    place<T>(what: T): T | string;
}
declare const methods: {
    open(this: LoadOptions, what: Openable, given: OpenOptions): Promise<{
        handle: number;
        summary: unknown;
    }>;
    verify(this: LoadOptions, what: Openable, given: OpenOptions, quick: boolean): Promise<unknown>;
    vocabulary: (handle: number) => unknown;
    stats: (handle: number, name: string) => unknown;
    regions: (handle: number) => unknown;
    record(handle: number, row: number): unknown;
    values(handle: number, name: string, start: number | undefined, end: number | undefined): {
        dtype: string;
        shape: number[];
        bytes: Uint8Array<ArrayBufferLike>;
    };
    convert(handle: number, request: string): {
        files: {
            name: string | null;
            bytes: Uint8Array<ArrayBufferLike>;
        }[];
    };
    loadEncoder(this: LoadOptions, what: Openable, given: OpenOptions, compute: string): Promise<{
        handle: number;
        dimensions: number;
        maxTokens: number;
    }>;
    embed: (handle: number, texts: string[], prompting: string) => Float32Array<ArrayBufferLike>;
    tokenize: (handle: number, text: string) => number[];
    loadEmbeddings(this: LoadOptions, from: Loadable, meta: Loadable | Meta | undefined, options: EmbeddingsOptions): Promise<{
        handle: number;
        count: number;
        dimensions: number;
        records: readonly import("./meta.js").CardRecord[] | undefined;
    }>;
    search: (handle: number, queries: Float32Array[], k: number, options: SearchOptions) => import("./embeddings.js").Hit[][];
    row: (handle: number, row: number) => Float32Array<ArrayBuffer>;
    dequantize: (handle: number) => Float32Array<ArrayBuffer>;
    close(handle: number): void;
};
export type Method = keyof typeof methods;
/** Works here and now, which in a page would stop it from doing anything else. */
export declare const local: Engine;
export {};
