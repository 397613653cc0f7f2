import { WeighbridgeError } from "./errors.js";
/** Where the formats and the retired export are explained. */
const PAGE = "docs/browser.md#the-retired-float16-export";
/** A file of rows that can't be used; the rules are those of docs/formats/i8bin.md. */
export function broken(rule, message, more = {}) {
    return new WeighbridgeError({ kind: "malformed", rule, message, ...more });
}
/** The export before int8, which the specification says to refuse, with what to do about it. */
export function retired(found) {
    const message = `Unsupported embedding format: ${found}, that of the legacy float16 export (v1.x). ` +
        "Re-export embeddings using export_for_browser.py, which writes embeddings.i8bin and a new meta.json, " +
        `and load both instead. Documentation: ${PAGE}`;
    return broken("I8-06", message, { found, hint: "re-export embeddings using export_for_browser.py" });
}
/** The specification's message, with its hint. */
export function wrongSize(rows, dimensions, found) {
    const expected = rows * dimensions;
    if (found === expected * 2) {
        return retired(`${found} bytes for ${rows} cards × ${dimensions} dims, 2 bytes a value`);
    }
    const message = `Embedding file size mismatch: expected ${expected} bytes (${rows} cards × ${dimensions} dims), ` +
        `got ${found} bytes. Re-export embeddings using export_for_browser.py`;
    return broken("I8-01", message, { expected: `${expected} bytes`, found: `${found} bytes` });
}
/** Checks what was parsed of a `meta.json`. */
export function checkMeta(given) {
    if (Array.isArray(given)) {
        throw retired("meta.json is a bare array");
    }
    if (typeof given !== "object" || given === null) {
        throw broken("I8-05", "meta.json is malformed: it is no object", { field: "meta.json" });
    }
    const meta = given;
    const { dtype, scale_factor: scale } = meta.quantization ?? {};
    if (dtype === "float16") {
        throw retired("meta.json says float16");
    }
    if ((dtype !== undefined && dtype !== "int8") || (scale !== undefined && scale !== 127)) {
        const found = `${dtype ?? "int8"} with a scale factor of ${scale ?? 127}`;
        const message = `meta.json describes another kind of values: expected int8 with a scale factor of 127, found ${found}`;
        throw broken("I8-09", message, { field: "meta.json quantization", found });
    }
    const { shape, records } = meta;
    const isSize = (value) => Number.isSafeInteger(value) && value >= 0;
    if (shape !== undefined && !(Array.isArray(shape) && shape.length === 2 && shape.every(isSize) && shape[1] > 0)) {
        const message = `meta.json has an impossible shape: ${JSON.stringify(shape)}`;
        throw broken("I8-02", message, { field: "meta.json shape" });
    }
    if (records !== undefined && !Array.isArray(records)) {
        throw broken("I8-05", "meta.json is malformed: records is no array", { field: "meta.json records" });
    }
    return meta;
}
