import { once, setPlatform } from "./platform.js";
import { remote } from "./remote.js";
import { openBlob, openUrl } from "./web-files.js";
// Bundlers look for exactly this expression, and ship the files that it names.
const MODULES = {
    search: [new URL("./wasm/search.wasm", import.meta.url), new URL("./wasm/search-plain.wasm", import.meta.url)],
    weighbridge: [
        new URL("./wasm/weighbridge.wasm", import.meta.url),
        new URL("./wasm/weighbridge-plain.wasm", import.meta.url),
    ],
};
setPlatform({
    async module(name, plain) {
        const response = await fetch(MODULES[name][plain ? 1 : 0]);
        if (!response.ok) {
            throw new Error(`${response.url}: ${response.status} ${response.statusText}`);
        }
        // Servers that don't know the type of .wasm are common.
        return response.headers.get("content-type") === "application/wasm"
            ? WebAssembly.compileStreaming(response)
            : WebAssembly.compile(await response.arrayBuffer());
    },
    // Files are read at once, which only a Worker may do.
    engine: once(async () => {
        if (typeof document === "undefined") {
            return (await import("./engine.js")).local;
        }
        return remote(new Worker(new URL("./thread.js", import.meta.url), { type: "module" }));
    }),
    openPlace: openUrl,
    openBlob: async (blob) => openBlob(blob),
    request: (url, signal) => fetch(url, signal === undefined ? {} : { signal }),
});
