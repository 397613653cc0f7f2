import type { Engine, Method } from "./engine.js";
import { type ErrorReport, WeighbridgeError } from "./errors.js";
import type { LoadOptions, LoadProgress } from "./fetching.js";

/** What goes to the Worker. */
export type Request = { id: number; method: Method; args: readonly unknown[] } | { id: number; abort: true };

/** What comes back: how far it is, or how it ended. */
export type Reply =
  | { id: number; progress: LoadProgress }
  | { id: number; result: unknown }
  | { id: number; error: ErrorReport | { name: string; message: string } };

interface Waiting {
  resolve: (result: unknown) => void;
  reject: (error: unknown) => void;
  onProgress: LoadOptions["onProgress"];
}

/** Work is done in a Worker, so that the page goes on. */
export function remote(worker: Worker): Engine {
  const waiting = new Map<number, Waiting>();
  let last = 0;
  worker.onmessage = ({ data }: MessageEvent<Reply>) => {
    const call = waiting.get(data.id);
    if ("progress" in data) {
      call?.onProgress?.(data.progress);
      return;
    }
    waiting.delete(data.id);
    if ("error" in data) {
      call?.reject(revived(data.error));
    } else {
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
  const place = <T>(what: T) =>
    typeof what === "string" || what instanceof URL ? new URL(what, document.baseURI).href : what;
  return {
    place,
    call(method, args, { signal, onProgress } = {}) {
      return new Promise((resolve, reject) => {
        signal?.throwIfAborted();
        const id = ++last;
        waiting.set(id, { resolve, reject, onProgress });
        const post = (request: Request) => worker.postMessage(request);
        post({ id, method, args });
        signal?.addEventListener("abort", () => post({ id, abort: true }), { once: true });
      });
    },
  };
}

function revived(error: ErrorReport | { name: string; message: string }): Error {
  return "kind" in error ? new WeighbridgeError(error) : new DOMException(error.message, error.name);
}
