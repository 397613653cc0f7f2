/** What runs in the Worker of a page. */
import "./platform-web.js";
import { local } from "./engine.js";
import { WeighbridgeError } from "./errors.js";
const running = new Map();
function reply(message, transfer = []) {
    postMessage(message, { transfer });
}
self.onmessage = async ({ data }) => {
    const { id } = data;
    if ("abort" in data) {
        running.get(id)?.abort();
        return;
    }
    const controller = new AbortController();
    running.set(id, controller);
    try {
        const options = { signal: controller.signal, onProgress: (progress) => reply({ id, progress }) };
        const result = await local.call(data.method, data.args, options);
        reply({ id, result }, buffers(result));
    }
    catch (error) {
        reply({ id, error: told(error) });
    }
    finally {
        running.delete(id);
    }
};
/** Values are handed over, not copied. */
function buffers(result) {
    if (ArrayBuffer.isView(result)) {
        return result.buffer instanceof ArrayBuffer ? [result.buffer] : [];
    }
    const held = typeof result === "object" && result !== null && !Array.isArray(result) ? result : {};
    const parts = "files" in held && Array.isArray(held.files) ? held.files : [held];
    return parts.flatMap((part) => "bytes" in part && part.bytes instanceof Uint8Array ? [part.bytes.buffer] : []);
}
function told(error) {
    if (error instanceof WeighbridgeError) {
        return error.report;
    }
    if (error instanceof DOMException) {
        return { name: error.name, message: error.message };
    }
    return { kind: "internal", message: error instanceof Error ? error.message : String(error) };
}
