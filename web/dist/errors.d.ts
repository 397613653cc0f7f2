/** What went wrong, as the library tells it; docs/json.md has the kinds. */
export type ErrorKind = "malformed" | "unrecognised" | "unsupported" | "not-found" | "refused" | "loss" | "limit" | "cancelled" | "changed" | "io" | "internal";
/** An error as JSON has it. Members that don't apply are left out. */
export interface ErrorReport {
    kind: ErrorKind;
    message: string;
    file?: string;
    /** The rule of the format that is broken. */
    rule?: string;
    /** The bytes that it is about: the first, and the one behind the last. */
    start?: number;
    end?: number;
    field?: string;
    expected?: string;
    found?: string;
    hint?: string;
    /** What would be lost by a conversion. */
    losses?: unknown[];
}
/** Everything that the package throws, but for `AbortError` where a signal was aborted. */
export declare class WeighbridgeError extends Error {
    readonly name = "WeighbridgeError";
    readonly kind: ErrorKind;
    readonly rule: string | undefined;
    readonly hint: string | undefined;
    /** All that is known. */
    readonly report: ErrorReport;
    constructor(report: ErrorReport, cause?: unknown);
}
/** Calls the native half, which throws reports as texts. */
export declare function native<T>(call: () => T): T;
