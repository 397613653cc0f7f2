import { type LoadOptions } from "./fetching.js";
import { type Place, type Source } from "./source.js";
/** A Blob, slice by slice. Only Workers have what it takes. */
export declare function openBlob(blob: Blob): Source;
/** A file of a server: range by range where it knows ranges, else whole. */
export declare function openUrl(place: string | URL, options: LoadOptions & {
    whole?: boolean;
}): Promise<Place>;
