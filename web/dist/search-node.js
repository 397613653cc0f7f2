/** The search in rows of int8 alone, in Node. */
import "./platform-node.js";
export * from "./rows.js";
