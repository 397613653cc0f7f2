import type { Engine } from "./engine.js";
import { WeighbridgeError } from "./errors.js";
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
  openPlace(place: string | URL, options: LoadOptions & { whole?: boolean }): Promise<Place>;
  /** The same of a Blob. */
  openBlob(blob: Blob): Promise<Source>;
}

let current: Platform | undefined;

/** The entries of the package set it; whoever serves the modules elsewhere may change it. */
export function setPlatform(platform: Platform): void {
  current = platform;
}

export function platform(): Platform {
  if (current === undefined) {
    throw new WeighbridgeError({ kind: "internal", message: "the package was not imported by its entry" });
  }
  return current;
}

/** A module that has one function with a vector instruction in it. */
const WITH_SIMD = new Uint8Array([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11,
]);

/** Compiles a module, once, with vectors where there are some. */
export function compile(name: ModuleName): Promise<WebAssembly.Module> {
  return platform().module(name, !WebAssembly.validate(WITH_SIMD));
}

/** A promise that is made when it is first asked for, and again if it failed. */
export function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make().catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}
