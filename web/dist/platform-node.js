import { createReadStream } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { basename } from "node:path";
import { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { loadBytes } from "./fetching.js";
import { openPath } from "./node-files.js";
import { setPlatform } from "./platform.js";
import { folderOf, inMemory } from "./source.js";
setPlatform({
    async module(name, plain) {
        const file = new URL(`./wasm/${name}${plain ? "-plain" : ""}.wasm`, import.meta.url);
        return WebAssembly.compile(await readFile(file));
    },
    engine: async () => (await import("./engine.js")).local,
    async openPlace(place, options) {
        const path = pathOf(place);
        if (path !== undefined) {
            return openPath(path);
        }
        // Node can't wait for ranges of a server while a parser runs, so that the whole file is fetched.
        const source = inMemory(await loadBytes(place, options, "the file"));
        const url = String(place);
        return { name: basename(new URL(url).pathname), path: url, source, folder: folderOf(new Map()) };
    },
    openBlob: async (blob) => inMemory(new Uint8Array(await blob.arrayBuffer())),
    request(url, signal) {
        const path = pathOf(url);
        return path === undefined ? fetch(url, signal === undefined ? {} : { signal }) : readPath(path, signal);
    },
});
/** The path that is meant, unless it is a URL of a server. */
export function pathOf(place) {
    if (place instanceof URL) {
        return place.protocol === "file:" ? fileURLToPath(place) : undefined;
    }
    if (place.startsWith("file:")) {
        return fileURLToPath(place);
    }
    return /^(https?|data|blob):/.test(place) ? undefined : place;
}
/** A file as a server would give it. */
async function readPath(path, signal) {
    const found = await stat(path).catch(() => undefined);
    if (found === undefined || !found.isFile()) {
        return new Response(null, { status: 404, statusText: `Not Found: ${basename(path)}` });
    }
    const stream = Readable.toWeb(createReadStream(path, signal === undefined ? {} : { signal }));
    return new Response(stream, { headers: { "content-length": String(found.size) } });
}
