import { WeighbridgeError } from "./errors.js";
import { platform } from "./platform.js";
/** Starts loading. What is there already arrives in one piece. */
export async function load(from, options, what) {
    options.signal?.throwIfAborted();
    if (typeof from === "string" || from instanceof URL) {
        const response = await request(from, options.signal, what);
        return arriving(String(from), sizeOf(response), response.body, options);
    }
    if (from instanceof Blob) {
        const name = "name" in from ? String(from.name) : "a Blob";
        return arriving(name, from.size, from.stream(), options);
    }
    const bytes = from instanceof ArrayBuffer ? new Uint8Array(from) : viewed(from);
    options.onProgress?.({ loaded: bytes.length, total: bytes.length });
    return { name: "an ArrayBuffer", size: bytes.length, pieces: one(bytes), stop() { } };
}
function viewed(view) {
    return new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
}
async function request(url, signal, what) {
    let response;
    try {
        response = await platform().request(url, signal);
    }
    catch (cause) {
        signal?.throwIfAborted();
        const message = `Failed to load ${what}: ${cause instanceof Error ? cause.message : String(cause)}`;
        throw new WeighbridgeError({ kind: "io", message, file: String(url) }, cause);
    }
    if (!response.ok) {
        const status = `${response.status} ${response.statusText}`.trim();
        const message = `Failed to load ${what}: ${status}. Check that ${String(url)} exists`;
        const kind = response.status === 404 ? "not-found" : "io";
        throw new WeighbridgeError({ kind, message, file: String(url), hint: `check that ${String(url)} exists` });
    }
    return response;
}
/** Of what is compressed on the way, the header tells another size. */
function sizeOf(response) {
    const size = Number(response.headers.get("content-length") ?? Number.NaN);
    return response.headers.has("content-encoding") || !Number.isSafeInteger(size) ? undefined : size;
}
function arriving(name, size, stream, options) {
    const reader = stream?.getReader();
    const { signal } = options;
    // Streams don't always end when their signal does.
    const aborted = new Promise((_, reject) => {
        signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
    aborted.catch(() => { });
    async function* pieces() {
        let loaded = 0;
        while (reader !== undefined) {
            signal?.throwIfAborted();
            const next = await Promise.race([reader.read(), aborted]);
            if (next.done) {
                return;
            }
            loaded += next.value.length;
            options.onProgress?.({ loaded, total: size });
            yield next.value;
        }
    }
    return { name, size, pieces: pieces(), stop: () => void reader?.cancel().catch(() => { }) };
}
async function* one(bytes) {
    yield bytes;
}
/** Everything as text. */
export async function loadText(from, options, what) {
    const decoder = new TextDecoder("utf-8", { fatal: true });
    const { pieces } = await load(from, { signal: options.signal }, what);
    let text = "";
    for await (const piece of pieces) {
        text += decoder.decode(piece, { stream: true });
    }
    return text + decoder.decode();
}
/** Everything as bytes. */
export async function loadBytes(from, options, what) {
    const { pieces } = await load(from, options, what);
    const all = [];
    for await (const piece of pieces) {
        all.push(piece);
    }
    return joined(all);
}
export function joined(pieces) {
    const bytes = new Uint8Array(pieces.reduce((size, piece) => size + piece.length, 0));
    let at = 0;
    for (const piece of pieces) {
        bytes.set(piece, at);
        at += piece.length;
    }
    return bytes;
}
