import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const built = (name: string) => fileURLToPath(new URL(`dist/${name}`, import.meta.url));

export default defineConfig({
  test: {
    include: ["test/*.test.ts"],
    testTimeout: 600_000,
    // Of the package itself the entries for Node; test/install takes them as others do.
    alias: [
      { find: /^weighbridge\/search$/, replacement: built("search-node.js") },
      { find: /^weighbridge$/, replacement: built("node.js") },
    ],
  },
});
