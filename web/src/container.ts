import type { Engine } from "./engine.js";
import type { LoadOptions } from "./fetching.js";
import type { Openable, OpenOptions } from "./place.js";
import { platform } from "./platform.js";

/** A tensor as it is stored; docs/json.md has all members. */
export interface TensorInfo {
  name: string;
  /** Element type, or how values are quantized. */
  encoding: string;
  shape: number[];
  /** Where its data begins, and how many bytes it has; null without data. */
  offset: number | null;
  bytes: number | null;
  quantization?: unknown;
}

/** What is in a file, as `weighbridge inspect --json` prints it. */
export interface Summary {
  format: string;
  layout: string;
  flags: string[];
  size: number;
  metadata: Record<string, unknown>;
  sizevars: Record<string, number>;
  tensors: TensorInfo[];
  vocabulary: { size: number; special: Record<string, number> } | null;
  attachments: { name: string; bytes: number }[];
  rows: { count: number; dim: number; records: boolean } | null;
  model: Record<string, unknown> | null;
}

/** Statistics of the finite values; null where there are none. */
export interface Stats {
  count: number;
  min: number | null;
  max: number | null;
  mean: number | null;
  median: number | null;
  std: number | null;
  nan: number;
  inf: number;
  zero: number;
  histogram: { low: number; high: number; count: number }[];
}

/** What some bytes of a file are. */
export interface Region {
  start: number;
  end: number;
  what: string;
}

/** A broken rule of a format. */
export interface Finding {
  rule: string;
  severity: "error" | "warning";
  message: string;
  start: number;
  end: number;
  file?: string;
  field?: string;
  expected?: string;
  found?: string;
  hint?: string;
}

/** What `weighbridge verify --json` prints. */
export interface Verdict {
  file: string;
  format: string | null;
  ok: boolean;
  findings: Finding[];
  more?: number;
  unchecked: unknown[];
}

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
} as const;

/** Values of a tensor: one behind the other, row by row. */
export interface Values {
  /** The type of the values. Floats that JavaScript has no arrays of are `f32`. */
  dtype: string;
  shape: number[];
  data: InstanceType<(typeof ARRAYS)[keyof typeof ARRAYS]>;
}

export interface ConvertOptions {
  /** Convert although something is lost. */
  allowLoss?: boolean;
  /** Patterns of tensor names to keep, or to leave out. */
  select?: readonly string[];
  exclude?: readonly string[];
  /** New names of tensors and metadata keys. */
  rename?: Readonly<Record<string, string>>;
  /** Metadata values to set. */
  set?: Readonly<Record<string, string>>;
  /** The type to store real numbers in. */
  dtype?: string;
  /** Options of the formats. */
  options?: Readonly<Record<string, string>>;
}

/** A file in another format. The file that was asked for has no name; those beside it have. */
export interface Converted {
  from: string;
  to: string;
  files: { name: string | null; bytes: Uint8Array<ArrayBuffer> }[];
  /** What was kept, changed and lost. */
  report: { kept: number; changed: unknown[]; losses: unknown[]; ignored: unknown[]; warnings: unknown[] };
}

/** Files that nobody closed. */
const forgotten = new FinalizationRegistry<() => void>((close) => close());

/** An open file. Its bytes are read when they are needed. */
export class Container {
  readonly summary: Summary;
  readonly #engine: Engine;
  readonly #handle: number;

  /** Made by `open`. */
  constructor(engine: Engine, handle: number, summary: Summary) {
    this.#engine = engine;
    this.#handle = handle;
    this.summary = summary;
    forgotten.register(this, () => void engine.call("close", [handle]), this);
  }

  /** The format's id. */
  get format(): string {
    return this.summary.format;
  }

  get tensors(): TensorInfo[] {
    return this.summary.tensors;
  }

  get metadata(): Record<string, unknown> {
    return this.summary.metadata;
  }

  /** All tokens or words, if there are any. */
  vocabulary(): Promise<string[] | null> {
    return this.#call("vocabulary") as Promise<string[] | null>;
  }

  /** What is known of a row, of a file of rows. */
  record(row: number): Promise<Record<string, unknown> | undefined> {
    return this.#call("record", row) as Promise<Record<string, unknown> | undefined>;
  }

  /** The values of a tensor, or of some rows of it: those from `start` on, up to but without `end`. */
  async values(name: string, range: { start?: number; end?: number } = {}): Promise<Values> {
    const made = await this.#call("values", name, range.start, range.end);
    const { dtype, shape, bytes } = made as { dtype: string; shape: number[]; bytes: Uint8Array<ArrayBuffer> };
    const Kind = ARRAYS[dtype as keyof typeof ARRAYS] ?? Uint8Array;
    return { dtype, shape, data: new Kind(bytes.buffer, bytes.byteOffset, bytes.byteLength / Kind.BYTES_PER_ELEMENT) };
  }

  /** Statistics of a tensor; null if it has no values. */
  stats(name: string): Promise<Stats | null> {
    return this.#call("stats", name) as Promise<Stats | null>;
  }

  /** What every byte of the file is. */
  regions(): Promise<Region[]> {
    return this.#call("regions") as Promise<Region[]>;
  }

  /** The same in another format, in memory. */
  convert(format: string, options: ConvertOptions = {}): Promise<Converted> {
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
    return this.#call("convert", JSON.stringify(request)) as Promise<Converted>;
  }

  /** Lets go of the file. */
  async close(): Promise<void> {
    forgotten.unregister(this);
    await this.#call("close");
  }

  #call(method: Parameters<Engine["call"]>[0], ...args: unknown[]): Promise<unknown> {
    return this.#engine.call(method, [this.#handle, ...args]);
  }
}

/** What an engine is asked to open: a signal and a function don't travel to a Worker by themselves. */
export function asked<T extends OpenOptions>(
  engine: Engine,
  what: Openable,
  options: T,
): [what: unknown, rest: Omit<T, keyof LoadOptions>, mine: LoadOptions] {
  const { signal, onProgress, ...rest } = options;
  const beside = Object.entries(options.beside ?? {}).map(([name, from]) => [name, engine.place(from)]);
  return [engine.place(what), { ...rest, beside: Object.fromEntries(beside) }, { signal, onProgress }];
}

/** Opens a file of any format, or a model directory. */
export async function open(what: Openable, options: OpenOptions = {}): Promise<Container> {
  const engine = await platform().engine();
  const [place, rest, mine] = asked(engine, what, options);
  const { handle, summary } = (await engine.call("open", [place, rest], mine)) as { handle: number; summary: Summary };
  return new Container(engine, handle, summary);
}

export interface VerifyOptions extends OpenOptions {
  /** Check the structure alone, without reading all data. */
  quick?: boolean;
}

/** Holds a file against every rule of its format. */
export async function verify(what: Openable, options: VerifyOptions = {}): Promise<Verdict> {
  const engine = await platform().engine();
  const [place, { quick = false, ...rest }, mine] = asked(engine, what, options);
  return (await engine.call("verify", [place, rest, quick], mine)) as Verdict;
}
