import { Embeddings, type EmbeddingsOptions, loadEmbeddings, type SearchOptions } from "./embeddings.js";
import { native, WeighbridgeError } from "./errors.js";
import type { LoadOptions } from "./fetching.js";
import type { Meta } from "./meta.js";
import { Container, initSync, openContainer, TextModel, verifyContainer } from "./native/weighbridge.js";
import { find, type Openable, type OpenOptions } from "./place.js";
import { compile, type Loadable, once } from "./platform.js";
import { register } from "./source.js";

/** Where files are worked on: here, or in a Worker of the page. What it holds has numbers. */
export interface Engine {
  call(method: Method, args: readonly unknown[], options?: LoadOptions): Promise<unknown>;
  /** What is to be opened as it is called there: a Worker has another address than the page. */
  place<T>(what: T): T | string;
}

const ready = once(async () => initSync({ module: await compile("weighbridge") }));

let last = 0;
const held = new Map<number, { value: unknown; close: () => void }>();

function hold(value: unknown, close: () => void): number {
  held.set(++last, { value, close });
  return last;
}

function get<T extends object>(handle: number, kind: { readonly prototype: T }): T {
  const found = held.get(handle)?.value;
  if (!Object.prototype.isPrototypeOf.call(kind.prototype, Object(found))) {
    throw new WeighbridgeError({ kind: "refused", message: "it was closed" });
  }
  return found as T;
}

function pairs(options: OpenOptions): string {
  const all = Object.entries(options.options ?? {});
  return JSON.stringify(options.format === undefined ? all : [...all, ["from", options.format]]);
}

/** Work on a file that is opened for it. */
async function opened<T>(
  what: Openable,
  options: OpenOptions & { whole?: boolean },
  work: (described: string) => T,
): Promise<[T, () => void]> {
  await ready();
  const { described, close } = register(await find(what, options));
  try {
    return [native(() => work(described)), close];
  } catch (error) {
    close();
    throw error;
  }
}

const methods = {
  async open(this: LoadOptions, what: Openable, given: OpenOptions) {
    const options = { ...given, ...this };
    const [container, close] = await opened(what, options, (described) => openContainer(described, pairs(options)));
    const summary: unknown = JSON.parse(native(() => container.summary(false)));
    const free = () => {
      container.free();
      close();
    };
    return { handle: hold(container, free), summary };
  },

  async verify(this: LoadOptions, what: Openable, given: OpenOptions, quick: boolean) {
    const options = { ...given, ...this };
    const work = (described: string) => verifyContainer(described, pairs(options), quick);
    const [verdict, close] = await opened(what, options, work);
    close();
    return JSON.parse(verdict) as unknown;
  },

  vocabulary: (handle: number) => JSON.parse(native(() => get(handle, Container).vocabulary())) as unknown,
  stats: (handle: number, name: string) => JSON.parse(native(() => get(handle, Container).stats(name))) as unknown,
  regions: (handle: number) => JSON.parse(native(() => get(handle, Container).summary(true))).regions as unknown,

  record(handle: number, row: number) {
    const text = native(() => get(handle, Container).record(row));
    return text === undefined ? undefined : (JSON.parse(text) as unknown);
  },

  values(handle: number, name: string, start: number | undefined, end: number | undefined) {
    const values = native(() => get(handle, Container).values(name, start, end));
    const { dtype, shape } = values;
    const bytes = values.takeBytes();
    values.free();
    return { dtype, shape: [...shape], bytes };
  },

  convert(handle: number, request: string) {
    const converted = native(() => get(handle, Container).convert(request));
    const told = JSON.parse(converted.report) as { files: [string | null, number][] };
    const files = told.files.map(([name], i) => ({ name, bytes: converted.takeFile(i) }));
    converted.free();
    return { ...told, files };
  },

  async loadEncoder(this: LoadOptions, what: Openable, given: OpenOptions, compute: string) {
    const options = { ...given, ...this, whole: true };
    const work = (described: string) => {
      const container = openContainer(described, pairs(options));
      try {
        return new TextModel(container, compute);
      } finally {
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

  embed: (handle: number, texts: string[], prompting: string) =>
    native(() => get(handle, TextModel).embed(texts, prompting)),
  tokenize: (handle: number, text: string) => [...native(() => get(handle, TextModel).tokenize(text))],

  async loadEmbeddings(
    this: LoadOptions,
    from: Loadable,
    meta: Loadable | Meta | undefined,
    options: EmbeddingsOptions,
  ) {
    const loaded = await loadEmbeddings(from, meta, { ...options, ...this });
    const { count, dimensions, records } = loaded;
    const handle = hold(loaded, () => loaded.close());
    return { handle, count, dimensions, records };
  },

  search: (handle: number, queries: Float32Array[], k: number, options: SearchOptions) =>
    get(handle, Embeddings).searchBatch(queries, k, options),
  row: (handle: number, row: number) => get(handle, Embeddings).row(row),
  dequantize: (handle: number) => get(handle, Embeddings).dequantize(),

  close(handle: number) {
    held.get(handle)?.close();
    held.delete(handle);
  },
};

export type Method = keyof typeof methods;

/** Works here and now, which in a page would stop it from doing anything else. */
export const local: Engine = {
  place: (what) => what,
  async call(method, args, options = {}) {
    options.signal?.throwIfAborted();
    // What a method takes is known to the classes that call it.
    const work = methods[method] as (this: LoadOptions, ...args: unknown[]) => unknown;
    return await work.call(options, ...args);
  },
};
