import type { Engine, Method } from "./engine.js";
import { type ErrorReport } from "./errors.js";
import type { LoadProgress } from "./fetching.js";
/** What goes to the Worker. */
export type Request = {
    id: number;
    method: Method;
    args: readonly unknown[];
} | {
    id: number;
    abort: true;
};
/** What comes back: how far it is, or how it ended. */
export type Reply = {
    id: number;
    progress: LoadProgress;
} | {
    id: number;
    result: unknown;
} | {
    id: number;
    error: ErrorReport | {
        name: string;
        message: string;
    };
};
/** Work is done in a Worker, so that the page goes on. */
export declare function remote(worker: Worker): Engine;
