import { Embeddings, loadEmbeddings } from "./embeddings.js";
import { native, WeighbridgeError } from "./errors.js";
import { Container, initSync, openContainer, TextModel, verifyContainer } from "./native/weighbridge.js";
import { find } from "./place.js";
import { compile, once } from "./platform.js";
import { register } from "./source.js";
const ready = once(async () => initSync({ module: await compile("weighbridge") }));
let last = 0;
const held = new Map();
function hold(value, close) {
    held.set(++last, { value, close });
    return last;
}
function get(handle, kind) {
    const found = held.get(handle)?.value;
    if (!Object.prototype.isPrototypeOf.call(kind.prototype, Object(found))) {
        throw new WeighbridgeError({ kind: "refused", message: "it was closed" });
    }
    return found;
}
function pairs(options) {
    const all = Object.entries(options.options ?? {});
    return JSON.stringify(options.format === undefined ? all : [...all, ["from", options.format]]);
}
/** Work on a file that is opened for it. */
async function opened(what, options, work) {
    await ready();
    const { described, close } = register(await find(what, options));
    try {
        return [native(() => work(described)), close];
    }
    catch (error) {
        close();
        throw error;
    }
}
const methods = {
    async open(what, given) {
        const options = { ...given, ...this };
        const [container, close] = await opened(what, options, (described) => openContainer(described, pairs(options)));
        const summary = JSON.parse(native(() => container.summary(false)));
        const free = () => {
            container.free();
            close();
        };
        return { handle: hold(container, free), summary };
    },
    async verify(what, given, quick) {
        const options = { ...given, ...this };
        const work = (described) => verifyContainer(described, pairs(options), quick);
        const [verdict, close] = await opened(what, options, work);
        close();
        return JSON.parse(verdict);
    },
    vocabulary: (handle) => JSON.parse(native(() => get(handle, Container).vocabulary())),
    stats: (handle, name) => JSON.parse(native(() => get(handle, Container).stats(name))),
    regions: (handle) => JSON.parse(native(() => get(handle, Container).summary(true))).regions,
    record(handle, row) {
        const text = native(() => get(handle, Container).record(row));
        return text === undefined ? undefined : JSON.parse(text);
    },
    values(handle, name, start, end) {
        const values = native(() => get(handle, Container).values(name, start, end));
        const { dtype, shape } = values;
        const bytes = values.takeBytes();
        values.free();
        return { dtype, shape: [...shape], bytes };
    },
    convert(handle, request) {
        const converted = native(() => get(handle, Container).convert(request));
        const told = JSON.parse(converted.report);
        const files = told.files.map(([name], i) => ({ name, bytes: converted.takeFile(i) }));
        converted.free();
        return { ...told, files };
    },
    async loadEncoder(what, given, compute) {
        const options = { ...given, ...this, whole: true };
        const work = (described) => {
            const container = openContainer(described, pairs(options));
            try {
                return new TextModel(container, compute);
            }
            finally {
                container.free();
            }
        };
        // The file stays open: its checksums are compared before the first vector is given away.
        const [encoder, close] = await opened(what, options, work);
        const { dimensions, maxTokens } = encoder;
        const free = () => {
            encoder.free();
            close();
        };
        return { handle: hold(encoder, free), dimensions, maxTokens };
    },
    embed: (handle, texts, prompting) => native(() => get(handle, TextModel).embed(texts, prompting)),
    tokenize: (handle, text) => [...native(() => get(handle, TextModel).tokenize(text))],
    async loadEmbeddings(from, meta, options) {
        const loaded = await loadEmbeddings(from, meta, { ...options, ...this });
        const { count, dimensions, records } = loaded;
        const handle = hold(loaded, () => loaded.close());
        return { handle, count, dimensions, records };
    },
    search: (handle, queries, k, options) => get(handle, Embeddings).searchBatch(queries, k, options),
    row: (handle, row) => get(handle, Embeddings).row(row),
    dequantize: (handle) => get(handle, Embeddings).dequantize(),
    close(handle) {
        held.get(handle)?.close();
        held.delete(handle);
    },
};
/** Works here and now, which in a page would stop it from doing anything else. */
export const local = {
    place: (what) => what,
    async call(method, args, options = {}) {
        options.signal?.throwIfAborted();
        // What a method takes is known to the classes that call it.
        const work = methods[method];
        return await work.call(options, ...args);
    },
};
