/** Rows that are loaded and searched in a Worker: the same functions as of the package, which promise. */
import "./platform-web.js";
import { rowsOf } from "./embeddings.js";
import { platform } from "./platform.js";
export * from "./api.js";
/** Rows of int8 in the memory of a Worker. Records are here. */
export class WorkerEmbeddings {
    count;
    dimensions;
    records;
    #engine;
    #handle;
    /** Made by `loadEmbeddings`. */
    constructor(engine, loaded) {
        this.#engine = engine;
        this.#handle = loaded.handle;
        this.count = loaded.count;
        this.dimensions = loaded.dimensions;
        this.records = loaded.records;
    }
    /** The values of a row. */
    row(row) {
        return this.#engine.call("row", [this.#handle, row]);
    }
    /** What is known of a row. */
    record(row) {
        return this.records?.[row];
    }
    /** The values of all rows: four bytes each. */
    dequantize() {
        return this.#engine.call("dequantize", [this.#handle]);
    }
    /** The `k` nearest rows of a vector, exactly. */
    async search(query, k = 10, options = {}) {
        return (await this.searchBatch([query], k, options))[0] ?? [];
    }
    /** The same for several vectors. */
    async searchBatch(queries, k = 10, options = {}) {
        const { filter, ...rest } = options;
        // Records are here, and functions can't be sent.
        const among = rowsOf(filter, this.count, this.records);
        const sent = among === undefined ? rest : { ...rest, filter: among };
        const found = (await this.#engine.call("search", [this.#handle, queries, k, sent]));
        return found.map((hits) => hits.map((hit) => ({ ...hit, record: this.records?.[hit.row] })));
    }
    /** Gives the memory back. */
    async close() {
        await this.#engine.call("close", [this.#handle]);
    }
}
/** Loads rows of int8 into a Worker. */
export async function loadEmbeddings(from, meta, options = {}) {
    const engine = await platform().engine();
    const { signal, onProgress, ...rest } = options;
    const args = [engine.place(from), engine.place(meta), rest];
    const loaded = await engine.call("loadEmbeddings", args, { signal, onProgress });
    return new WorkerEmbeddings(engine, loaded);
}
