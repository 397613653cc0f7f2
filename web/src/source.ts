/** A file that is read range by range, at once: parsers don't wait. */
export interface Source {
  readonly size: number;
  /** Fills the front of `out` with the bytes from `offset` on and says how many; 0 if the file was changed. */
  read(offset: number, out: Uint8Array): number;
  close?(): void;
}

/** The files around one that is opened, or of a model directory, by relative name with `/`. */
export interface Folder {
  open(name: string): Source | undefined;
  list(): string[];
}

/** Something that was found at a place. */
export interface Place {
  name: string;
  path: string;
  /** The file; none for a folder. */
  source?: Source;
  folder: Folder;
}

/** Bytes that are there. */
export function inMemory(bytes: Uint8Array): Source {
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
export function folderOf(files: ReadonlyMap<string, Source>): Folder {
  return { open: (name) => files.get(name), list: () => [...files.keys()] };
}

// The native half knows sources and folders by their numbers.
let last = 0;
const sources = new Map<number, Source>();
const folders = new Map<number, Folder>();
/** Which sources were opened in a folder. */
const within = new Map<number, number[]>();

/** A place as the native half is told of it, and how to let go of it. */
export function register(place: Place): { described: string; close: () => void } {
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

function enter(source: Source, folder: number): number {
  sources.set(++last, source);
  within.get(folder)?.push(last);
  return last;
}

/** Errors reach the native half as texts. */
function told<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw error instanceof Error ? error.message : String(error);
  }
}

function known<T>(found: T | undefined): T {
  if (found === undefined) {
    throw new Error("the file was closed");
  }
  return found;
}

// What the native half calls.

export function readSource(id: number, offset: number, out: Uint8Array): number {
  return told(() => known(sources.get(id)).read(offset, out));
}

export function sourceSize(id: number): number {
  return told(() => known(sources.get(id)).size);
}

export function openBeside(folder: number, name: string): number | undefined {
  return told(() => {
    const found = known(folders.get(folder)).open(name);
    return found === undefined ? undefined : enter(found, folder);
  });
}

export function listFolder(folder: number): string[] {
  return told(() => known(folders.get(folder)).list());
}

let panic: string | undefined;

/** What a defect of the native half said of itself. */
export function lastPanic(): string | undefined {
  return panic;
}

export function keepPanic(text: string): void {
  panic = text;
}
