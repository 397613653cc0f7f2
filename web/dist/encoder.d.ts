import type { Openable, OpenOptions } from "./place.js";
export interface EncoderOptions extends OpenOptions {
    /** The precision of the products: `q8` rounds to integers and is faster. */
    compute?: "f32" | "q8";
}
/** What stands in front of each text: this, or what the model has for questions or for documents. */
export interface EmbedOptions {
    prompt?: string;
    purpose?: "query" | "document";
}
/** A model that makes vectors of texts. */
export declare class Encoder {
    #private;
    /** How many values a vector has. */
    readonly dimensions: number;
    /** The most tokens of a text that count. */
    readonly maxTokens: number;
    private constructor();
    /** Loads a model of BERT's family from a file of any format, such as an `.mcf` with everything in it. */
    static load(what: Openable, options?: EncoderOptions): Promise<Encoder>;
    /** The vector of a text, or the vectors of several. */
    embed(text: string, options?: EmbedOptions): Promise<Float32Array<ArrayBuffer>>;
    embed(texts: readonly string[], options?: EmbedOptions): Promise<Float32Array<ArrayBuffer>[]>;
    /** The numbers of a text's tokens. */
    tokenize(text: string): Promise<number[]>;
    /** Gives the memory back. */
    close(): Promise<void>;
}
