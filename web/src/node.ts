/** The package in Node. */
import "./platform-node.js";

export * from "./api.js";
