import type { Engine } from "./engine.js";
import type { LoadOptions } from "./fetching.js";
import type { Place, Source } from "./source.js";
/** A module of the native half: the search alone, or everything. */
export type ModuleName = "search" | "weighbridge";
/** Something to load: a URL, in Node also a path; or bytes that are there. */
export type Loadable = string | URL | Blob | ArrayBuffer | ArrayBufferView<ArrayBuffer>;
/** What differs between pages and Node. */
export interface Platform {
    /** The bytes of a module; the plain one is without simd128. */
    module(name: ModuleName, plain: boolean): Promise<WebAssembly.Module>;
    /** A response for a URL or a path. */
    request(url: string | URL, signal: AbortSignal | undefined): Promise<Response>;
    /** Where files of other formats are worked on. */
    engine(): Promise<Engine>;
    /** Opens a URL, in Node also a path, for reading range by range; at once if all of it will be read. */
    openPlace(place: string | URL, options: LoadOptions & {
        whole?: boolean;
    }): Promise<Place>;
    /** The same of a Blob. */
    openBlob(blob: Blob): Promise<Source>;
}
/** The entries of the package set it; whoever serves the modules elsewhere may change it. */
export declare function setPlatform(platform: Platform): void;
export declare function platform(): Platform;
/** Compiles a module, once, with vectors where there are some. */
export declare function compile(name: ModuleName): Promise<WebAssembly.Module>;
/** A promise that is made when it is first asked for, and again if it failed. */
export declare function once<T>(make: () => Promise<T>): () => Promise<T>;
