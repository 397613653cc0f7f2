// What somebody writes who has installed the package.
import { loadEmbeddings, open } from "weighbridge";
import { loadEmbeddings as loadAlone } from "weighbridge/search";

const rows = new Int8Array(2 * 512);
rows[0] = rows[512 + 7] = 127;
for (const load of [loadEmbeddings, loadAlone]) {
  const cards = await load(rows, { shape: [2, 512], records: [{ name: "first" }, { name: "second" }] });
  const [hit] = cards.search(cards.row(1), 1);
  if (hit?.row !== 1 || hit.record?.name !== "second") {
    throw new Error(`found ${JSON.stringify(hit)}`);
  }
}
const file = await open(rows, { name: "embeddings.i8bin" });
if (
  file.format !== "i8bin" ||
  !import.meta.resolve("weighbridge/wasm/search.wasm").endsWith("/dist/wasm/search.wasm")
) {
  throw new Error(file.format);
}
console.log("the package can be installed and used");
