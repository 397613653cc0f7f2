import { type Loadable } from "./platform.js";
/** How much of a file has arrived; `total` is unknown where the server does not say it. */
export interface LoadProgress {
    loaded: number;
    total: number | undefined;
}
export interface LoadOptions {
    /** Ends the work with an `AbortError`. */
    signal?: AbortSignal | undefined;
    /** Called as bytes arrive. */
    onProgress?: ((progress: LoadProgress) => void) | undefined;
}
/** Bytes that arrive piece by piece. */
export interface Arriving {
    /** What messages call it. */
    name: string;
    /** How many there will be, if that is known. */
    size: number | undefined;
    pieces: AsyncIterable<Uint8Array>;
    /** Nobody wants the rest. */
    stop(): void;
}
/** Starts loading. What is there already arrives in one piece. */
export declare function load(from: Loadable, options: LoadOptions, what: string): Promise<Arriving>;
/** Everything as text. */
export declare function loadText(from: Loadable, options: LoadOptions, what: string): Promise<string>;
/** Everything as bytes. */
export declare function loadBytes(from: Loadable, options: LoadOptions, what: string): Promise<Uint8Array>;
export declare function joined(pieces: readonly Uint8Array[]): Uint8Array<ArrayBuffer>;
