/** What is not part of the package: the program, files that were made for the tests, and data from elsewhere. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "../..");

/** Where a variable says, else in the usual place. */
function place(variable: string, usual: string): string {
  return resolve(process.env[variable] || join(root, usual));
}

const target = place("CARGO_TARGET_DIR", "target");
/** The program, which web/check builds. */
export const program = join(target, "release/weighbridge");
/** Fixtures and mutants, which web/check writes. */
export const files = join(target, "web-files");
export const conformance = place("WEIGHBRIDGE_CONFORMANCE", "../shared/conformance");
export const specification = join(conformance, "../specs/i8bin.md");
/** all-MiniLM-L6-v2 as q8 in one file, which web/check makes. */
export const minilm = join(target, "web-minilm.mcf");

/** Runs the program, and gives what it prints. */
export function run(...args: string[]): string {
  const { stdout, error } = spawnSync(program, args, { maxBuffer: 1 << 30, encoding: "utf8" });
  if (error !== undefined) {
    throw error;
  }
  return stdout;
}

/** Whether data is there; without it a test is skipped visibly, or fails where nothing may be missing. */
export function has(what: string): boolean {
  if (existsSync(what)) {
    return true;
  }
  if (process.env.WEIGHBRIDGE_REQUIRE === "1") {
    throw new Error(`WEIGHBRIDGE_REQUIRE=1, but there is no ${what}`);
  }
  console.error(`SKIPPED: there is no ${what}`);
  return false;
}
