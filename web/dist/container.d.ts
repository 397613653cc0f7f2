import type { Engine } from "./engine.js";
import type { LoadOptions } from "./fetching.js";
import type { Openable, OpenOptions } from "./place.js";
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
    vocabulary: {
        size: number;
        special: Record<string, number>;
    } | null;
    attachments: {
        name: string;
        bytes: number;
    }[];
    rows: {
        count: number;
        dim: number;
        records: boolean;
    } | null;
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
    histogram: {
        low: number;
        high: number;
        count: number;
    }[];
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
declare const ARRAYS: {
    readonly f32: Float32ArrayConstructor;
    readonly f64: Float64ArrayConstructor;
    readonly i8: Int8ArrayConstructor;
    readonly i16: Int16ArrayConstructor;
    readonly i32: Int32ArrayConstructor;
    readonly i64: BigInt64ArrayConstructor;
    readonly u8: Uint8ArrayConstructor;
    readonly u16: Uint16ArrayConstructor;
    readonly u32: Uint32ArrayConstructor;
    readonly u64: BigUint64ArrayConstructor;
};
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
    files: {
        name: string | null;
        bytes: Uint8Array<ArrayBuffer>;
    }[];
    /** What was kept, changed and lost. */
    report: {
        kept: number;
        changed: unknown[];
        losses: unknown[];
        ignored: unknown[];
        warnings: unknown[];
    };
}
/** An open file. Its bytes are read when they are needed. */
export declare class Container {
    #private;
    readonly summary: Summary;
    /** Made by `open`. */
    constructor(engine: Engine, handle: number, summary: Summary);
    /** The format's id. */
    get format(): string;
    get tensors(): TensorInfo[];
    get metadata(): Record<string, unknown>;
    /** All tokens or words, if there are any. */
    vocabulary(): Promise<string[] | null>;
    /** What is known of a row, of a file of rows. */
    record(row: number): Promise<Record<string, unknown> | undefined>;
    /** The values of a tensor, or of some rows of it: those from `start` on, up to but without `end`. */
    values(name: string, range?: {
        start?: number;
        end?: number;
    }): Promise<Values>;
    /** Statistics of a tensor; null if it has no values. */
    stats(name: string): Promise<Stats | null>;
    /** What every byte of the file is. */
    regions(): Promise<Region[]>;
    /** The same in another format, in memory. */
    convert(format: string, options?: ConvertOptions): Promise<Converted>;
    /** Lets go of the file. */
    close(): Promise<void>;
}
/** What an engine is asked to open: a signal and a function don't travel to a Worker by themselves. */
export declare function asked<T extends OpenOptions>(engine: Engine, what: Openable, options: T): [what: unknown, rest: Omit<T, keyof LoadOptions>, mine: LoadOptions];
/** Opens a file of any format, or a model directory. */
export declare function open(what: Openable, options?: OpenOptions): Promise<Container>;
export interface VerifyOptions extends OpenOptions {
    /** Check the structure alone, without reading all data. */
    quick?: boolean;
}
/** Holds a file against every rule of its format. */
export declare function verify(what: Openable, options?: VerifyOptions): Promise<Verdict>;
export {};
