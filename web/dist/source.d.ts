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
export declare function inMemory(bytes: Uint8Array): Source;
/** A folder of given files. */
export declare function folderOf(files: ReadonlyMap<string, Source>): Folder;
/** A place as the native half is told of it, and how to let go of it. */
export declare function register(place: Place): {
    described: string;
    close: () => void;
};
export declare function readSource(id: number, offset: number, out: Uint8Array): number;
export declare function sourceSize(id: number): number;
export declare function openBeside(folder: number, name: string): number | undefined;
export declare function listFolder(folder: number): string[];
/** What a defect of the native half said of itself. */
export declare function lastPanic(): string | undefined;
export declare function keepPanic(text: string): void;
