import { type ErrorReport, WeighbridgeError } from "./errors.js";
/** What is known of a row, as `meta.json` has it. */
export type CardRecord = Record<string, unknown>;
/** `meta.json`, which lies beside a file of rows. Other members are passed over. */
export interface Meta {
    version?: string;
    quantization?: {
        dtype?: string;
        scale_factor?: number;
    };
    /** Rows, and values in a row. */
    shape?: readonly [number, number] | readonly number[];
    /** One for each row. */
    records?: readonly CardRecord[];
}
/** A file of rows that can't be used; the rules are those of docs/formats/i8bin.md. */
export declare function broken(rule: string, message: string, more?: Partial<ErrorReport>): WeighbridgeError;
/** The export before int8, which the specification says to refuse, with what to do about it. */
export declare function retired(found: string): WeighbridgeError;
/** The specification's message, with its hint. */
export declare function wrongSize(rows: number, dimensions: number, found: number): WeighbridgeError;
/** Checks what was parsed of a `meta.json`. */
export declare function checkMeta(given: unknown): Meta;
