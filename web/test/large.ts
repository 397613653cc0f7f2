/** A file that is larger than what a page or a process should load. */
import { closeSync, ftruncateSync, openSync, writeSync } from "node:fs";

const WIDTH = 384;
const BYTES = 3_000_000_000;
/** Rows of the large file. */
export const LARGE_ROWS = BYTES / 4 / WIDTH;
/** What its last row begins with. */
export const LARGE_END = [1, 2, 3, 0];

/** The header of an array of f32, as NumPy writes it. */
export function npyHeader(rows: number, width: number): Buffer {
  const text = `{'descr': '<f4', 'fortran_order': False, 'shape': (${rows}, ${width}), }`;
  return Buffer.concat([
    Buffer.from([0x93]),
    Buffer.from("NUMPY\x01\x00\x76\x00"),
    Buffer.from(`${text.padEnd(117)}\n`),
  ]);
}

/** Writes 3 GB of rows: nearly all of it is a hole, which takes no room on the disk. */
export function writeLarge(path: string): void {
  const header = npyHeader(LARGE_ROWS, WIDTH);
  const out = openSync(path, "w");
  writeSync(out, header);
  ftruncateSync(out, header.length + BYTES);
  const end = Buffer.from(new Float32Array(LARGE_END).buffer);
  writeSync(out, end, 0, end.length, header.length + (LARGE_ROWS - 1) * WIDTH * 4);
  closeSync(out);
}
