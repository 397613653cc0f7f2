export {
  dequantize,
  Embeddings,
  type EmbeddingsOptions,
  type Hit,
  loadEmbeddings,
  type Metric,
  type SearchOptions,
  STRICT_NORMS,
} from "./embeddings.js";
export { type ErrorKind, type ErrorReport, WeighbridgeError } from "./errors.js";
export type { LoadOptions, LoadProgress } from "./fetching.js";
export type { CardRecord, Meta } from "./meta.js";
export type { Loadable } from "./platform.js";
