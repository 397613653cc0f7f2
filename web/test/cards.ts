/** Made-up rows with records, and the definition of what is near. */
import type { Meta, Metric } from "weighbridge";

const COLOURS = ["red", "green", "blue", "white", "black"] as const;

/** Rows of unit length as int8, all different, the same each time. */
export function cards(count: number, dimensions: number): { bytes: Uint8Array<ArrayBuffer>; meta: Meta } {
  let state = 1;
  const random = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32 - 0.5;
  };
  const codes = new Int8Array(count * dimensions);
  for (let row = 0; row < count; row++) {
    const values = Array.from({ length: dimensions }, () => random() + random() + random());
    const norm = Math.sqrt(values.reduce((sum, v) => sum + v * v, 0));
    values.forEach((value, i) => {
      codes[row * dimensions + i] = Math.round((value / norm) * 127);
    });
  }
  const records = Array.from({ length: count }, (_, row) => ({ name: `card ${row}`, colour: COLOURS[row % 5] }));
  const meta = {
    version: "1.0",
    quantization: { dtype: "int8", scale_factor: 127 },
    shape: [count, dimensions] as const,
    records,
  };
  return { bytes: new Uint8Array(codes.buffer), meta };
}

/** The nearest rows, in double precision. */
export function nearest(values: Float32Array, dimensions: number, query: Float32Array, k: number, metric: Metric) {
  const norm = (vector: Float32Array) => Math.sqrt(vector.reduce((sum, v) => sum + v * v, 0));
  const scores = Array.from({ length: values.length / dimensions }, (_, row) => {
    const vector = values.subarray(row * dimensions, (row + 1) * dimensions);
    const dot = vector.reduce((sum, v, i) => sum + v * (query[i] as number), 0);
    const distance = Math.sqrt(vector.reduce((sum, v, i) => sum + (v - (query[i] as number)) ** 2, 0));
    const score = { dot, cosine: dot / norm(vector) / norm(query), l2: -distance }[metric];
    return { row, score };
  });
  return scores.sort((a, b) => b.score - a.score || a.row - b.row).slice(0, k);
}
