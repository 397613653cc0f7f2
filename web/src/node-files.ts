import { closeSync, fstatSync, openSync, readdirSync, readSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join, resolve, sep } from "node:path";
import { WeighbridgeError } from "./errors.js";
import type { Folder, Place, Source } from "./source.js";

/** Folders deeper than this, and with more files, are no model's. */
const DEPTH = 16;
const MOST = 10_000;

/** A file that is read at positions, or a model directory. */
export function openPath(path: string): Place {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) {
    const message = `${path}: No such file or directory (os error 2)`;
    throw new WeighbridgeError({ kind: "not-found", message, file: path });
  }
  if (found.isDirectory()) {
    return { name: basename(resolve(path)), path, folder: folderAt(path) };
  }
  return { name: basename(path), path, source: openFile(path), folder: folderAt(dirname(path)) };
}

function openFile(path: string): Source {
  const file = openSync(path, "r");
  const { size, mtimeMs } = fstatSync(file);
  return {
    size,
    read(offset, out) {
      const now = fstatSync(file);
      const isSame = now.size === size && now.mtimeMs === mtimeMs;
      return isSame ? readSync(file, out, 0, out.length, offset) : 0;
    },
    close: () => closeSync(file),
  };
}

function folderAt(folder: string): Folder {
  return {
    open(name) {
      const path = join(folder, name);
      const found = statSync(path, { throwIfNoEntry: false });
      if (found === undefined) {
        return undefined;
      }
      const real = realpathSync(path);
      if (!isWithin(real, realpathSync(folder))) {
        throw new Error(`${name} leads out of the folder, to ${real}`);
      }
      if (!found.isFile()) {
        throw new Error(`${JSON.stringify(name)} is not a regular file`);
      }
      return openFile(path);
    },
    list: () => names(folder, "", 0, []),
  };
}

/** A link may lead to other places in the folder; from a snapshot of the hub's cache to its model's blobs. */
function isWithin(path: string, folder: string): boolean {
  const snapshots = dirname(folder);
  const isCached = basename(snapshots) === "snapshots" && basename(dirname(snapshots)).startsWith("models--");
  const allowed = isCached ? [folder, join(dirname(snapshots), "blobs")] : [folder];
  return allowed.some((place) => path.startsWith(place + sep));
}

/** As the library lists them: folders are entered, but for those with dot names. */
function names(at: string, prefix: string, depth: number, found: string[]): string[] {
  for (const entry of readdirSync(at, { withFileTypes: true })) {
    if (found.length >= MOST || depth > DEPTH) {
      throw new Error("too many files or folders for a model directory");
    }
    const name = `${prefix}${entry.name}`;
    if (!entry.isDirectory()) {
      found.push(name);
    } else if (entry.name.startsWith(".")) {
      found.push(`${name}/`);
    } else {
      names(join(at, entry.name), `${name}/`, depth + 1, found);
    }
  }
  return found;
}
