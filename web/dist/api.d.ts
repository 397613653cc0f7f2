export { Container, type Converted, type ConvertOptions, type Finding, open, type Region, type Stats, type Summary, type TensorInfo, type Values, type Verdict, type VerifyOptions, verify, } from "./container.js";
export { type EmbedOptions, Encoder, type EncoderOptions } from "./encoder.js";
export type { Openable, OpenOptions } from "./place.js";
export * from "./rows.js";
