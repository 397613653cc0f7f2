/** The path that is meant, unless it is a URL of a server. */
export declare function pathOf(place: string | URL): string | undefined;
