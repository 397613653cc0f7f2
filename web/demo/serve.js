// @ts-check
/** `npm start`: serves the demo with its sample. The tests serve files of their own as well. */

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { makeCards } from "./sample.js";

const root = fileURLToPath(new URL("..", import.meta.url));
/** @type {Record<string, string>} */
const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".wasm": "application/wasm",
  ".json": "application/json",
  ".svg": "image/svg+xml",
};

/**
 * @param {number} port
 * @param {Map<string, Uint8Array>} [more] files by path, before those of the folder
 */
export async function serve(port, more = new Map()) {
  const { bytes, meta } = makeCards(50_000, 512);
  const files = new Map([
    ["/sample/embeddings.i8bin", bytes],
    ["/sample/meta.json", new TextEncoder().encode(JSON.stringify(meta))],
    ...more,
  ]);
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://localhost");
    const path = pathname === "/" ? "/demo/index.html" : pathname;
    const isOurs = path.startsWith("/demo/") || path.startsWith("/dist/");
    const place = join(root, normalize(decodeURIComponent(path)));
    const body = files.get(path) ?? (isOurs ? await readFile(place).catch(() => undefined) : undefined);
    if (body === undefined) {
      response.writeHead(404, "Not Found").end();
      return;
    }
    const type = TYPES[extname(path)] ?? "application/octet-stream";
    const [start, end] = rangeOf(request.headers.range, body.length);
    const isPart = request.headers.range !== undefined;
    response.writeHead(isPart ? 206 : 200, {
      "content-type": type,
      "content-length": end - start,
      "cache-control": "no-store",
      ...(isPart ? { "content-range": `bytes ${start}-${end - 1}/${body.length}` } : {}),
    });
    response.end(body.subarray(start, end));
  });
  await new Promise((done) => server.listen(port, "127.0.0.1", () => done(undefined)));
  return server;
}

/**
 * The bytes that are asked for.
 * @param {string | undefined} header
 * @param {number} size
 * @returns {[start: number, end: number]}
 */
function rangeOf(header, size) {
  const found = header?.match(/^bytes=(\d+)-(\d*)$/);
  return found ? [Number(found[1]), Math.min(size, found[2] ? Number(found[2]) + 1 : size)] : [0, size];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const port = Number(process.env.PORT ?? 8017);
  console.log("making 50,000 sample cards …");
  await serve(port);
  console.log(`the card finder is at http://localhost:${port}/`);
}
