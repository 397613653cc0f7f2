/** The search in rows of int8 alone, for a page or a Worker. */
import "./platform-web.js";
export * from "./rows.js";
