/** Bytes that are there. */
export function inMemory(bytes) {
    return {
        size: bytes.length,
        read(offset, out) {
            const part = bytes.subarray(offset, offset + out.length);
            out.set(part);
            return part.length;
        },
    };
}
/** A folder of given files. */
export function folderOf(files) {
    return { open: (name) => files.get(name), list: () => [...files.keys()] };
}
// The native half knows sources and folders by their numbers.
let last = 0;
const sources = new Map();
const folders = new Map();
/** Which sources were opened in a folder. */
const within = new Map();
/** A place as the native half is told of it, and how to let go of it. */
export function register(place) {
    const folder = ++last;
    folders.set(folder, place.folder);
    within.set(folder, []);
    const source = place.source === undefined ? null : enter(place.source, folder);
    const described = JSON.stringify({ name: place.name, path: place.path, source, folder });
    const close = () => {
        for (const id of within.get(folder) ?? []) {
            sources.get(id)?.close?.();
            sources.delete(id);
        }
        within.delete(folder);
        folders.delete(folder);
    };
    return { described, close };
}
function enter(source, folder) {
    sources.set(++last, source);
    within.get(folder)?.push(last);
    return last;
}
/** Errors reach the native half as texts. */
function told(work) {
    try {
        return work();
    }
    catch (error) {
        throw error instanceof Error ? error.message : String(error);
    }
}
function known(found) {
    if (found === undefined) {
        throw new Error("the file was closed");
    }
    return found;
}
// What the native half calls.
export function readSource(id, offset, out) {
    return told(() => known(sources.get(id)).read(offset, out));
}
export function sourceSize(id) {
    return told(() => known(sources.get(id)).size);
}
export function openBeside(folder, name) {
    return told(() => {
        const found = known(folders.get(folder)).open(name);
        return found === undefined ? undefined : enter(found, folder);
    });
}
export function listFolder(folder) {
    return told(() => known(folders.get(folder)).list());
}
let panic;
/** What a defect of the native half said of itself. */
export function lastPanic() {
    return panic;
}
export function keepPanic(text) {
    panic = text;
}
