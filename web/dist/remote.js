import { WeighbridgeError } from "./errors.js";
/** Work is done in a Worker, so that the page goes on. */
export function remote(worker) {
    const waiting = new Map();
    let last = 0;
    worker.onmessage = ({ data }) => {
        const call = waiting.get(data.id);
        if ("progress" in data) {
            call?.onProgress?.(data.progress);
            return;
        }
        waiting.delete(data.id);
        if ("error" in data) {
            call?.reject(revived(data.error));
        }
        else {
            call?.resolve(data.result);
        }
    };
    worker.onerror = (event) => {
        const message = `the Worker failed: ${event.message}`;
        for (const call of waiting.values()) {
            call.reject(new WeighbridgeError({ kind: "internal", message }));
        }
        waiting.clear();
    };
    const place = (what) => typeof what === "string" || what instanceof URL ? new URL(what, document.baseURI).href : what;
    return {
        place,
        call(method, args, { signal, onProgress } = {}) {
            return new Promise((resolve, reject) => {
                signal?.throwIfAborted();
                const id = ++last;
                waiting.set(id, { resolve, reject, onProgress });
                const post = (request) => worker.postMessage(request);
                post({ id, method, args });
                signal?.addEventListener("abort", () => post({ id, abort: true }), { once: true });
            });
        },
    };
}
function revived(error) {
    return "kind" in error ? new WeighbridgeError(error) : new DOMException(error.message, error.name);
}
