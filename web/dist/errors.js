import { lastPanic } from "./source.js";
/** Everything that the package throws, but for `AbortError` where a signal was aborted. */
export class WeighbridgeError extends Error {
    name = "WeighbridgeError";
    kind;
    rule;
    hint;
    /** All that is known. */
    report;
    constructor(report, cause) {
        super(report.message, cause === undefined ? undefined : { cause });
        this.kind = report.kind;
        this.rule = report.rule;
        this.hint = report.hint;
        this.report = report;
    }
}
/** Calls the native half, which throws reports as texts. */
export function native(call) {
    try {
        return call();
    }
    catch (thrown) {
        throw asError(thrown);
    }
}
function asError(thrown) {
    if (typeof thrown === "string") {
        try {
            return new WeighbridgeError(JSON.parse(thrown));
        }
        catch {
            return new WeighbridgeError({ kind: "refused", message: thrown });
        }
    }
    if (thrown instanceof WebAssembly.RuntimeError) {
        const message = `a defect of weighbridge: ${lastPanic() ?? thrown.message}`;
        return new WeighbridgeError({ kind: "internal", message }, thrown);
    }
    return thrown;
}
