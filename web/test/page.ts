/** A real browser with a page, and a server for it. */
import { existsSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { chromium } from "playwright-core";
import { serve } from "../demo/serve.js";

/** An empty page that finds the package as those find it that have installed it. */
const EMPTY = `<!doctype html><title>empty</title><link rel="icon" href="data:,">
<script type="importmap">{ "imports": { "weighbridge": "/dist/index.js", "weighbridge/worker": "/dist/worker.js" } }</script>
<script type="module">
  import * as weighbridge from "weighbridge";
  import * as worker from "weighbridge/worker";
  Object.assign(window, { weighbridge, worker });
</script>
<input type="search"><ol></ol>`;

declare global {
  interface Window {
    /** The package, for what tests do in the empty page. */
    weighbridge: typeof import("weighbridge");
    worker: typeof import("weighbridge/worker");
  }
}

/** Serves the demo and more files, and opens a browser. */
export async function launch(more: ReadonlyMap<string, Uint8Array>) {
  const places = [process.env.CHROMIUM ?? "", "/usr/bin/chromium"];
  const executablePath = places.find((path) => path !== "" && existsSync(path));
  if (executablePath === undefined) {
    throw new Error("there is no Chromium: web/check installs it, or CHROMIUM names it");
  }
  const empty = new TextEncoder().encode(EMPTY);
  const server = await serve(0, new Map([["/empty.html", empty], ["/notes/empty.html", empty], ...more]));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  const page = await browser.newPage({ viewport: { width: 1100, height: 640 } });
  const requests: string[] = [];
  page.on("request", (request) => requests.push(request.url().replace(origin, "")));
  return {
    page,
    /** What the page asked the network for since it was visited; own files without the origin. */
    requests,
    async visit(path: string): Promise<void> {
      requests.length = 0;
      await page.goto(`${origin}${path}`);
    },
    async close(): Promise<void> {
      await browser.close();
      server.close();
    },
  };
}
