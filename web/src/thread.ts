/** What runs in the Worker of a page. */
import "./platform-web.js";
import { local } from "./engine.js";
import { type ErrorReport, WeighbridgeError } from "./errors.js";
import type { LoadProgress } from "./fetching.js";
import type { Reply, Request } from "./remote.js";

const running = new Map<number, AbortController>();

function reply(message: Reply, transfer: Transferable[] = []): void {
  postMessage(message, { transfer });
}

self.onmessage = async ({ data }: MessageEvent<Request>) => {
  const { id } = data;
  if ("abort" in data) {
    running.get(id)?.abort();
    return;
  }
  const controller = new AbortController();
  running.set(id, controller);
  try {
    const options = { signal: controller.signal, onProgress: (progress: LoadProgress) => reply({ id, progress }) };
    const result = await local.call(data.method, data.args, options);
    reply({ id, result }, buffers(result));
  } catch (error) {
    reply({ id, error: told(error) });
  } finally {
    running.delete(id);
  }
};

/** Values are handed over, not copied. */
function buffers(result: unknown): ArrayBuffer[] {
  if (ArrayBuffer.isView(result)) {
    return result.buffer instanceof ArrayBuffer ? [result.buffer] : [];
  }
  const held = typeof result === "object" && result !== null && !Array.isArray(result) ? result : {};
  const parts = "files" in held && Array.isArray(held.files) ? held.files : [held];
  return parts.flatMap((part: object) =>
    "bytes" in part && part.bytes instanceof Uint8Array ? [part.bytes.buffer as ArrayBuffer] : [],
  );
}

function told(error: unknown): ErrorReport | { name: string; message: string } {
  if (error instanceof WeighbridgeError) {
    return error.report;
  }
  if (error instanceof DOMException) {
    return { name: error.name, message: error.message };
  }
  return { kind: "internal", message: error instanceof Error ? error.message : String(error) };
}
