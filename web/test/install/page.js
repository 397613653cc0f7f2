// What somebody bundles for a page.
import { loadEmbeddings } from "weighbridge/search";

const cards = await loadEmbeddings("/index_out/embeddings.i8bin");
globalThis.nearest = cards.search(cards.row(3), 1)[0]?.row;
