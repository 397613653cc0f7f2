/** The package in a page, a Worker, or a bundle for them. */
import "./platform-web.js";

export * from "./api.js";
