import { platform } from "./platform.js";
const ARRAYS = {
    f32: Float32Array,
    f64: Float64Array,
    i8: Int8Array,
    i16: Int16Array,
    i32: Int32Array,
    i64: BigInt64Array,
    u8: Uint8Array,
    u16: Uint16Array,
    u32: Uint32Array,
    u64: BigUint64Array,
};
/** Files that nobody closed. */
const forgotten = new FinalizationRegistry((close) => close());
/** An open file. Its bytes are read when they are needed. */
export class Container {
    summary;
    #engine;
    #handle;
    /** Made by `open`. */
    constructor(engine, handle, summary) {
        this.#engine = engine;
        this.#handle = handle;
        this.summary = summary;
        forgotten.register(this, () => void engine.call("close", [handle]), this);
    }
    /** The format's id. */
    get format() {
        return this.summary.format;
    }
    get tensors() {
        return this.summary.tensors;
    }
    get metadata() {
        return this.summary.metadata;
    }
    /** All tokens or words, if there are any. */
    vocabulary() {
        return this.#call("vocabulary");
    }
    /** What is known of a row, of a file of rows. */
    record(row) {
        return this.#call("record", row);
    }
    /** The values of a tensor, or of some rows of it: those from `start` on, up to but without `end`. */
    async values(name, range = {}) {
        const made = await this.#call("values", name, range.start, range.end);
        const { dtype, shape, bytes } = made;
        const Kind = ARRAYS[dtype] ?? Uint8Array;
        return { dtype, shape, data: new Kind(bytes.buffer, bytes.byteOffset, bytes.byteLength / Kind.BYTES_PER_ELEMENT) };
    }
    /** Statistics of a tensor; null if it has no values. */
    stats(name) {
        return this.#call("stats", name);
    }
    /** What every byte of the file is. */
    regions() {
        return this.#call("regions");
    }
    /** The same in another format, in memory. */
    convert(format, options = {}) {
        const request = {
            to: format,
            allow_loss: options.allowLoss ?? false,
            select: options.select ?? [],
            exclude: options.exclude ?? [],
            rename: Object.entries(options.rename ?? {}),
            set: Object.entries(options.set ?? {}),
            dtype: options.dtype ?? null,
            options: Object.entries(options.options ?? {}),
        };
        return this.#call("convert", JSON.stringify(request));
    }
    /** Lets go of the file. */
    async close() {
        forgotten.unregister(this);
        await this.#call("close");
    }
    #call(method, ...args) {
        return this.#engine.call(method, [this.#handle, ...args]);
    }
}
/** What an engine is asked to open: a signal and a function don't travel to a Worker by themselves. */
export function asked(engine, what, options) {
    const { signal, onProgress, ...rest } = options;
    const beside = Object.entries(options.beside ?? {}).map(([name, from]) => [name, engine.place(from)]);
    return [engine.place(what), { ...rest, beside: Object.fromEntries(beside) }, { signal, onProgress }];
}
/** Opens a file of any format, or a model directory. */
export async function open(what, options = {}) {
    const engine = await platform().engine();
    const [place, rest, mine] = asked(engine, what, options);
    const { handle, summary } = (await engine.call("open", [place, rest], mine));
    return new Container(engine, handle, summary);
}
/** Holds a file against every rule of its format. */
export async function verify(what, options = {}) {
    const engine = await platform().engine();
    const [place, { quick = false, ...rest }, mine] = asked(engine, what, options);
    return (await engine.call("verify", [place, rest, quick], mine));
}
