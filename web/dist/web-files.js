import { loadBytes } from "./fetching.js";
import { folderOf, inMemory } from "./source.js";
/** A Blob, slice by slice. Only Workers have what it takes. */
export function openBlob(blob) {
    const reader = new FileReaderSync();
    return {
        size: blob.size,
        read(offset, out) {
            const part = blob.slice(offset, offset + out.length);
            out.set(new Uint8Array(reader.readAsArrayBuffer(part)));
            return part.size;
        },
    };
}
/** How much of a file is asked for first. */
const HEAD = 65536;
/** A file of a server: range by range where it knows ranges, else whole. */
export async function openUrl(place, options) {
    const url = String(place);
    const path = new URL(url, location.href).pathname;
    const name = decodeURIComponent(path.slice(path.lastIndexOf("/") + 1));
    const source = options.whole ? await openWhole(url, options) : await openRanges(url, options);
    return { name, path: url, source, folder: folderOf(new Map()) };
}
async function openWhole(url, options) {
    return inMemory(await loadBytes(url, options, "the file"));
}
async function openRanges(url, options) {
    const headers = { range: `bytes=0-${HEAD - 1}` };
    const response = await fetch(url, { headers, ...(options.signal ? { signal: options.signal } : {}) });
    // An empty file has no range.
    const total = response.status === 206 ? sizeIn(response.headers.get("content-range")) : undefined;
    if (total === undefined) {
        await response.body?.cancel();
        return openWhole(url, options);
    }
    const head = new Uint8Array(await response.arrayBuffer());
    const tag = response.headers.get("etag");
    // What was asked for last, with some bytes behind it: parsers mostly go forward.
    let [start, known] = [0, head];
    return {
        size: total,
        read(offset, out) {
            const isKnown = () => offset >= start && offset + out.length <= start + known.length;
            if (!isKnown()) {
                const end = Math.min(Math.max(offset + out.length, offset + HEAD * 4), total);
                const bytes = readRange(url, offset, end, total, tag);
                if (bytes === undefined) {
                    return 0;
                }
                [start, known] = [offset, bytes];
            }
            const part = known.subarray(offset - start, offset - start + out.length);
            out.set(part);
            return part.length;
        },
    };
}
/** The number of all bytes: `bytes 0-99/1234`. */
function sizeIn(range) {
    const found = range?.match(/^bytes \d+-\d+\/(\d+)$/);
    return found ? Number(found[1]) : undefined;
}
/** Asks and waits, which is allowed in a Worker. Nothing if the file is no longer the same. */
function readRange(url, start, end, total, tag) {
    const request = new XMLHttpRequest();
    request.open("GET", url, false);
    request.responseType = "arraybuffer";
    request.setRequestHeader("range", `bytes=${start}-${end - 1}`);
    request.send();
    if (request.status !== 206) {
        throw new Error(`${request.status} ${request.statusText}`.trim());
    }
    const isSame = sizeIn(request.getResponseHeader("content-range")) === total;
    return isSame && request.getResponseHeader("etag") === tag
        ? new Uint8Array(request.response)
        : undefined;
}
