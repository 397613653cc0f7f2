// The types that somebody meets who has installed the package, without those of Node.
import { type Container, Encoder, type Hit, loadEmbeddings, open } from "weighbridge";
import { loadEmbeddings as loadAlone } from "weighbridge/search";
import { loadEmbeddings as loadInWorker } from "weighbridge/worker";

export async function nearest(query: Float32Array): Promise<Hit[]> {
  const [here, alone, there] = await Promise.all([loadEmbeddings("a"), loadAlone("a"), loadInWorker("a")]);
  return [...here.search(query, 5), ...alone.search(query, 5), ...(await there.search(query, 5))];
}

export async function model(): Promise<[Container, Float32Array]> {
  const encoder = await Encoder.load("model.mcf");
  return [await open("model.mcf"), await encoder.embed("a text")];
}
