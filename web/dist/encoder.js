import { asked } from "./container.js";
import { platform } from "./platform.js";
/** A model that makes vectors of texts. */
export class Encoder {
    /** How many values a vector has. */
    dimensions;
    /** The most tokens of a text that count. */
    maxTokens;
    #engine;
    #handle;
    constructor(engine, loaded) {
        this.#engine = engine;
        this.#handle = loaded.handle;
        this.dimensions = loaded.dimensions;
        this.maxTokens = loaded.maxTokens;
    }
    /** Loads a model of BERT's family from a file of any format, such as an `.mcf` with everything in it. */
    static async load(what, options = {}) {
        const engine = await platform().engine();
        const [place, { compute = "q8", ...rest }, mine] = asked(engine, what, options);
        const loaded = await engine.call("loadEncoder", [place, rest, compute], mine);
        return new Encoder(engine, loaded);
    }
    async embed(texts, options = {}) {
        const list = typeof texts === "string" ? [texts] : [...texts];
        const made = await this.#engine.call("embed", [this.#handle, list, JSON.stringify(options)]);
        const all = made;
        const each = list.map((_, i) => all.subarray(i * this.dimensions, (i + 1) * this.dimensions));
        return typeof texts === "string" ? all : each;
    }
    /** The numbers of a text's tokens. */
    tokenize(text) {
        return this.#engine.call("tokenize", [this.#handle, text]);
    }
    /** Gives the memory back. */
    async close() {
        await this.#engine.call("close", [this.#handle]);
    }
}
