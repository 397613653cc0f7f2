import { WeighbridgeError } from "./errors.js";
let current;
/** The entries of the package set it; whoever serves the modules elsewhere may change it. */
export function setPlatform(platform) {
    current = platform;
}
export function platform() {
    if (current === undefined) {
        throw new WeighbridgeError({ kind: "internal", message: "the package was not imported by its entry" });
    }
    return current;
}
/** A module that has one function with a vector instruction in it. */
const WITH_SIMD = new Uint8Array([
    0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11,
]);
/** Compiles a module, once, with vectors where there are some. */
export function compile(name) {
    return platform().module(name, !WebAssembly.validate(WITH_SIMD));
}
/** A promise that is made when it is first asked for, and again if it failed. */
export function once(make) {
    let made;
    return () => {
        made ??= make().catch((error) => {
            made = undefined;
            throw error;
        });
        return made;
    };
}
