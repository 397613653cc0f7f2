export { dequantize, Embeddings, loadEmbeddings, STRICT_NORMS, } from "./embeddings.js";
export { WeighbridgeError } from "./errors.js";
