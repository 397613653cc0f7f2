import { type LoadOptions } from "./fetching.js";
import { type Loadable } from "./platform.js";
import { type Place } from "./source.js";
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
export declare function find(what: Openable, options: OpenOptions & {
    whole?: boolean;
}): Promise<Place>;
