import type { Place } from "./source.js";
/** A file that is read at positions, or a model directory. */
export declare function openPath(path: string): Place;
