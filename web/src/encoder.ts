import { asked } from "./container.js";
import type { Engine } from "./engine.js";
import type { Openable, OpenOptions } from "./place.js";
import { platform } from "./platform.js";

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
export class Encoder {
  /** How many values a vector has. */
  readonly dimensions: number;
  /** The most tokens of a text that count. */
  readonly maxTokens: number;
  readonly #engine: Engine;
  readonly #handle: number;

  private constructor(engine: Engine, loaded: { handle: number; dimensions: number; maxTokens: number }) {
    this.#engine = engine;
    this.#handle = loaded.handle;
    this.dimensions = loaded.dimensions;
    this.maxTokens = loaded.maxTokens;
  }

  /** Loads a model of BERT's family from a file of any format, such as an `.mcf` with everything in it. */
  static async load(what: Openable, options: EncoderOptions = {}): Promise<Encoder> {
    const engine = await platform().engine();
    const [place, { compute = "q8", ...rest }, mine] = asked(engine, what, options);
    const loaded = await engine.call("loadEncoder", [place, rest, compute], mine);
    return new Encoder(engine, loaded as { handle: number; dimensions: number; maxTokens: number });
  }

  /** The vector of a text, or the vectors of several. */
  embed(text: string, options?: EmbedOptions): Promise<Float32Array<ArrayBuffer>>;
  embed(texts: readonly string[], options?: EmbedOptions): Promise<Float32Array<ArrayBuffer>[]>;
  async embed(
    texts: string | readonly string[],
    options: EmbedOptions = {},
  ): Promise<Float32Array<ArrayBuffer> | Float32Array<ArrayBuffer>[]> {
    const list = typeof texts === "string" ? [texts] : [...texts];
    const made = await this.#engine.call("embed", [this.#handle, list, JSON.stringify(options)]);
    const all = made as Float32Array<ArrayBuffer>;
    const each = list.map((_, i) => all.subarray(i * this.dimensions, (i + 1) * this.dimensions));
    return typeof texts === "string" ? all : each;
  }

  /** The numbers of a text's tokens. */
  tokenize(text: string): Promise<number[]> {
    return this.#engine.call("tokenize", [this.#handle, text]) as Promise<number[]>;
  }

  /** Gives the memory back. */
  async close(): Promise<void> {
    await this.#engine.call("close", [this.#handle]);
  }
}
