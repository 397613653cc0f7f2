import { type LoadOptions, loadBytes } from "./fetching.js";
import { type Loadable, platform } from "./platform.js";
import { type Folder, folderOf, inMemory, type Place, type Source } from "./source.js";

/**
 * What can be opened: a URL, in Node also a path; a File or Blob; bytes. Several Files are a model
 * directory, as `<input webkitdirectory>` gives it.
 */
export type Openable = Loadable | readonly File[];

export interface OpenOptions extends LoadOptions {
  /** The name, which tells the format where the bytes don't. Files, paths and URLs have one. */
  name?: string;
  /** The format's id, where nothing tells it. */
  format?: string;
  /** Files that lie beside it, by name: a `meta.json`, shards. In Node they are found by themselves. */
  beside?: Readonly<Record<string, Loadable>>;
  /** Options of the format, such as `dim` of rows without a description. */
  options?: Readonly<Record<string, string>>;
}

/** Finds what is to be opened; `whole` says that all of it will be read. */
export async function find(what: Openable, options: OpenOptions & { whole?: boolean }): Promise<Place> {
  const beside = new Map<string, Source>();
  for (const [name, from] of Object.entries(options.beside ?? {})) {
    beside.set(name, (await findOne(from, options)).source ?? inMemory(new Uint8Array()));
  }
  const place = isList(what) ? await directory(what) : await findOne(what, options);
  const named = options.name === undefined ? {} : { name: options.name, path: options.name };
  return { ...place, ...named, folder: both(folderOf(beside), place.folder) };
}

function isList(what: Openable): what is readonly File[] {
  return Array.isArray(what);
}

async function findOne(what: Loadable, options: OpenOptions & { whole?: boolean }): Promise<Place> {
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
async function directory(files: readonly File[]): Promise<Place> {
  const paths = files.map((file) => file.webkitRelativePath || file.name);
  const top = paths[0]?.split("/")[0] ?? "model";
  const isInside = paths.every((path) => path.startsWith(`${top}/`));
  const sources = new Map<string, Source>();
  for (const [i, file] of files.entries()) {
    const path = paths[i] as string;
    sources.set(isInside ? path.slice(top.length + 1) : path, await platform().openBlob(file));
  }
  const name = isInside ? top : "model";
  return { name, path: name, folder: folderOf(sources) };
}

function both(first: Folder, second: Folder): Folder {
  return {
    open: (name) => first.open(name) ?? second.open(name),
    list: () => [...new Set([...first.list(), ...second.list()])],
  };
}
