// Asks the library in WebAssembly what is in every bundle of a folder, and compares that with what
// the same library said outside: node compare.mjs MODULE FOLDER
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

const [module, folder] = process.argv.slice(2);
const { instance } = await WebAssembly.instantiate(readFileSync(module), {});
const { memory, reserve, answer } = instance.exports;

function tell(bundle) {
    const place = reserve(bundle.length);
    new Uint8Array(memory.buffer, place, bundle.length).set(bundle);
    const at = answer(place, bundle.length);
    const length = new DataView(memory.buffer).getUint32(at, true);
    return new TextDecoder().decode(new Uint8Array(memory.buffer, at + 4, length));
}

let visited = 0;
for (const name of readdirSync(folder).filter((name) => name.endsWith(".json"))) {
    const path = join(folder, name.slice(0, -".json".length));
    const expected = readFileSync(join(folder, name), "utf8");
    const found = tell(readFileSync(path));
    if (found !== expected) {
        const at = [...found].findIndex((c, i) => c !== expected[i]);
        console.error(`${name}: differs from character ${at} on`);
        console.error(`  here      ${expected.slice(Math.max(0, at - 80), at + 80)}`);
        console.error(`  in WebAssembly ${found.slice(Math.max(0, at - 80), at + 80)}`);
        process.exit(1);
    }
    visited += 1;
}
if (visited < 50) {
    console.error(`only ${visited} files`);
    process.exit(1);
}
console.log(`${visited} files are the same in WebAssembly`);
