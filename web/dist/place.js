import { loadBytes } from "./fetching.js";
import { platform } from "./platform.js";
import { folderOf, inMemory } from "./source.js";
/** Finds what is to be opened; `whole` says that all of it will be read. */
export async function find(what, options) {
    const beside = new Map();
    for (const [name, from] of Object.entries(options.beside ?? {})) {
        beside.set(name, (await findOne(from, options)).source ?? inMemory(new Uint8Array()));
    }
    const place = isList(what) ? await directory(what) : await findOne(what, options);
    const named = options.name === undefined ? {} : { name: options.name, path: options.name };
    return { ...place, ...named, folder: both(folderOf(beside), place.folder) };
}
function isList(what) {
    return Array.isArray(what);
}
async function findOne(what, options) {
    if (typeof what === "string" || what instanceof URL) {
        return platform().openPlace(what, options);
    }
    const nothing = folderOf(new Map());
    if (what instanceof Blob) {
        const name = what instanceof File ? what.name : (options.name ?? "a Blob");
        return { name, path: name, source: await platform().openBlob(what), folder: nothing };
    }
    const bytes = await loadBytes(what, {}, "bytes");
    const name = options.name ?? "an ArrayBuffer";
    return { name, path: name, source: inMemory(bytes), folder: nothing };
}
/** Files by their names within the folder that was chosen. */
async function directory(files) {
    const paths = files.map((file) => file.webkitRelativePath || file.name);
    const top = paths[0]?.split("/")[0] ?? "model";
    const isInside = paths.every((path) => path.startsWith(`${top}/`));
    const sources = new Map();
    for (const [i, file] of files.entries()) {
        const path = paths[i];
        sources.set(isInside ? path.slice(top.length + 1) : path, await platform().openBlob(file));
    }
    const name = isInside ? top : "model";
    return { name, path: name, folder: folderOf(sources) };
}
function both(first, second) {
    return {
        open: (name) => first.open(name) ?? second.open(name),
        list: () => [...new Set([...first.list(), ...second.list()])],
    };
}
