/** The package says of every file what the program says: of fixtures, files of others, and mutants. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Container, open, verify, WeighbridgeError } from "weighbridge";
import { conformance, files, has, run } from "./outside.js";

/** The program words hints with its flags; all else is the same. */
function withoutHints(value: unknown): unknown {
  const text = JSON.stringify(value, (key, member) => (key === "hint" ? undefined : member));
  return text === undefined ? undefined : JSON.parse(text);
}

/** The files that were made, one in each folder. */
function made(kind: string): string[] {
  const folder = join(files, kind);
  return readdirSync(folder).map((name) => join(folder, name, readFileSync(join(folder, name, ".name"), "utf8")));
}

/** What the package finds out, in the shape of the program's JSON. */
async function inspected(path: string, withStats: boolean): Promise<unknown> {
  let container: Container;
  try {
    container = await open(path);
  } catch (error) {
    if (!(error instanceof WeighbridgeError) || error.kind === "internal") {
      throw error;
    }
    return { error: error.report };
  }
  try {
    const { summary } = container;
    const told = structuredClone(summary) as unknown as Record<string, unknown> & typeof summary;
    for (const tensor of withStats ? told.tensors : []) {
      (tensor as { stats?: unknown }).stats = await container.stats(tensor.name);
    }
    const tokens = await container.vocabulary();
    // Tokens alone are compared: some tokenizers are described only where all tokens are listed.
    told.vocabulary = (tokens === null ? null : { tokens }) as never;
    told.regions = await container.regions();
    return told;
  } catch (error) {
    if (!(error instanceof WeighbridgeError) || error.kind === "internal") {
      throw error;
    }
    return { error: error.report };
  } finally {
    await container.close();
  }
}

async function verdict(path: string): Promise<unknown> {
  try {
    return await verify(path);
  } catch (error) {
    if (!(error instanceof WeighbridgeError) || error.kind === "internal") {
      throw error;
    }
    // What the program says of files that it could not look at.
    return error.kind;
  }
}

/** Verdicts of many files, in a few runs of the program. */
function verdicts(paths: string[]): unknown[] {
  const all: unknown[] = [];
  for (let start = 0; start < paths.length; start += 200) {
    const some = paths.slice(start, start + 200);
    all.push(...(JSON.parse(run("verify", "--json", ...some, some[0] as string)) as unknown[]).slice(0, some.length));
  }
  return all;
}

/** The module has no tokenizers but BERT's, and says so of models that need another one. */
function withoutTokenizers(summary: unknown): unknown {
  const model = (summary as { model?: { lacks?: string[] } }).model;
  if (model?.lacks) {
    const isOfTokenizer = /^(tokenizer|normalizer|pre-tokenizer) /;
    model.lacks = model.lacks.filter((name) => !isOfTokenizer.test(name));
  }
  return summary;
}

async function compare(paths: string[], withStats = true): Promise<void> {
  const expected = verdicts(paths);
  for (const [i, path] of paths.entries()) {
    const theirs = expected[i] as { findings: { rule: string }[] };
    const own = await verdict(path);
    const isUnreadable = theirs.findings.some(({ rule }) => rule === "UNREADABLE" || rule === "UNRECOGNISED");
    if (isUnreadable) {
      expect(typeof own, path).toBe("string");
    } else {
      expect(withoutHints(own), path).toEqual(withoutHints(theirs));
    }
    // Read as it is here: of arrays that are read at once because they stand column by column, a mapped file
    // tells the offset too.
    const flags = ["--no-mmap", "--json", "--bytes", "--vocab", ...(withStats ? ["--stats"] : [])];
    const printed = JSON.parse(run("inspect", ...flags, path));
    if (printed.vocabulary) {
      printed.vocabulary = { tokens: printed.vocabulary.tokens };
    }
    const shown = withoutHints(await inspected(path, withStats));
    expect(withoutTokenizers(shown), path).toEqual(withoutTokenizers(withoutHints(printed)));
  }
}

test("of every fixture", async () => {
  const all = made("fixtures");
  expect(all.length).toBeGreaterThanOrEqual(56);
  await compare(all);
  console.log(`${all.length} fixtures are the same`);
});

test("of 2,000 mutants, without a trap", async () => {
  const all = made("mutants");
  expect(all.length).toBeGreaterThanOrEqual(2000);
  await compare(all);
  console.log(`${all.length} mutants are the same`);
});

test("of small files that ask for much", async () => {
  const all = made("bombs");
  expect(all.length).toBeGreaterThanOrEqual(45);
  // Of all tensors together they would be too much, for which the program has a limit.
  await compare(all, false);
  console.log(`${all.length} bombs are the same`);
});

test("of files that others made", async (context) => {
  if (!has(conformance)) {
    return context.skip();
  }
  const all = readdirSync(conformance, { recursive: true, encoding: "utf8" }).map((name) => join(conformance, name));
  const regular = all.filter((path) => statSync(path).isFile());
  expect(regular.length).toBeGreaterThanOrEqual(60);
  await compare(regular);
  console.log(`${regular.length} files of others are the same`);
});
