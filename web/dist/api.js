export { Container, open, verify, } from "./container.js";
export { Encoder } from "./encoder.js";
export * from "./rows.js";
