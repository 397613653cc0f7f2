import { WeighbridgeError } from "./errors.js";
import { type Loadable, platform } from "./platform.js";

/** How much of a file has arrived; `total` is unknown where the server does not say it. */
export interface LoadProgress {
  loaded: number;
  total: number | undefined;
}

export interface LoadOptions {
  /** Ends the work with an `AbortError`. */
  signal?: AbortSignal | undefined;
  /** Called as bytes arrive. */
  onProgress?: ((progress: LoadProgress) => void) | undefined;
}

/** Bytes that arrive piece by piece. */
export interface Arriving {
  /** What messages call it. */
  name: string;
  /** How many there will be, if that is known. */
  size: number | undefined;
  pieces: AsyncIterable<Uint8Array>;
  /** Nobody wants the rest. */
  stop(): void;
}

/** Starts loading. What is there already arrives in one piece. */
export async function load(from: Loadable, options: LoadOptions, what: string): Promise<Arriving> {
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
  return { name: "an ArrayBuffer", size: bytes.length, pieces: one(bytes), stop() {} };
}

function viewed(view: ArrayBufferView): Uint8Array {
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
}

async function request(url: string | URL, signal: AbortSignal | undefined, what: string): Promise<Response> {
  let response: Response;
  try {
    response = await platform().request(url, signal);
  } catch (cause) {
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
function sizeOf(response: Response): number | undefined {
  const size = Number(response.headers.get("content-length") ?? Number.NaN);
  return response.headers.has("content-encoding") || !Number.isSafeInteger(size) ? undefined : size;
}

function arriving(
  name: string,
  size: number | undefined,
  stream: ReadableStream<Uint8Array> | null,
  options: LoadOptions,
): Arriving {
  const reader = stream?.getReader();
  const { signal } = options;
  // Streams don't always end when their signal does.
  const aborted = new Promise<never>((_, reject) => {
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
  aborted.catch(() => {});
  async function* pieces(): AsyncGenerator<Uint8Array> {
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
  return { name, size, pieces: pieces(), stop: () => void reader?.cancel().catch(() => {}) };
}

async function* one(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

/** Everything as text. */
export async function loadText(from: Loadable, options: LoadOptions, what: string): Promise<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const { pieces } = await load(from, { signal: options.signal }, what);
  let text = "";
  for await (const piece of pieces) {
    text += decoder.decode(piece, { stream: true });
  }
  return text + decoder.decode();
}

/** Everything as bytes. */
export async function loadBytes(from: Loadable, options: LoadOptions, what: string): Promise<Uint8Array> {
  const { pieces } = await load(from, options, what);
  const all: Uint8Array[] = [];
  for await (const piece of pieces) {
    all.push(piece);
  }
  return joined(all);
}

export function joined(pieces: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(pieces.reduce((size, piece) => size + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}
