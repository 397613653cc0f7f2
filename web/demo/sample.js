// @ts-check
/**
 * A made-up collection of cards. A text's vector is the sum of made-up vectors of its words and of their
 * three-letter parts, so that cards with similar names are near, and whatever is typed has a vector too. A real
 * page has vectors of a model instead.
 */

const ADJECTIVES =
  "amber ancient bright broken crimson distant drowned eager emerald fallen frozen gilded hollow hidden iron ivory jade lonely midnight moonlit mossy noble obsidian pale quiet radiant restless rusted sacred scarlet silent silver sleeping solemn stormy sunken swift thorned velvet wandering whispering wild winter young".split(
    " ",
  );
const NOUNS =
  "archer badger beacon caravan castle citadel comet cormorant dragon falcon ferry forest fortress fox gardener giant glacier griffin harbour heron hunter island knight lantern leviathan library lighthouse meadow merchant mill mountain oracle orchard owl pilgrim raven river sailor serpent shepherd smith spider tower turtle valley warden whale wolf".split(
    " ",
  );
const PLACES =
  "ash birch copper dawn dusk ember fern frost gold granite hazel mist north oak pine rain salt shadow snow south stone thunder tides willow".split(
    " ",
  );
const COLOURS = ["white", "blue", "black", "red", "green"];

/** @param {string} text */
function hash(text) {
  let state = 2166136261;
  for (let i = 0; i < text.length; i++) {
    state = Math.imul(state ^ text.charCodeAt(i), 16777619);
  }
  return state >>> 0;
}

/** @type {Map<string, Float32Array>} */
const known = new Map();

/**
 * Something that is made once for each text and number of dimensions.
 * @param {string} text
 * @param {number} dimensions
 * @param {() => Float32Array} make
 */
function once(text, dimensions, make) {
  const key = `${text}/${dimensions}`;
  const made = known.get(key) ?? make();
  known.set(key, made);
  return made;
}

/**
 * The vector of a word or of a part of one.
 * @param {string} part
 * @param {number} dimensions
 */
function partVector(part, dimensions) {
  let state = hash(part) || 1;
  return Float32Array.from({ length: dimensions }, () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 31 - 1;
  });
}

/**
 * A word and its parts of three letters.
 * @param {string} word
 * @param {number} dimensions
 */
function wordVector(word, dimensions) {
  const padded = `<${word}>`;
  const parts = Array.from({ length: padded.length - 2 }, (_, i) => padded.slice(i, i + 3));
  const vector = partVector(padded, dimensions);
  for (const part of parts) {
    add(
      vector,
      once(part, dimensions, () => partVector(part, dimensions)),
      1 / parts.length,
    );
  }
  return vector;
}

/**
 * @param {Float32Array} to
 * @param {Float32Array} vector
 * @param {number} weight
 */
function add(to, vector, weight) {
  for (let i = 0; i < to.length; i++) {
    to[i] = /** @type {number} */ (to[i]) + weight * /** @type {number} */ (vector[i]);
  }
}

/** @param {Float32Array} vector */
function unit(vector) {
  let squares = 0;
  for (let i = 0; i < vector.length; i++) {
    squares += /** @type {number} */ (vector[i]) ** 2;
  }
  return squares > 0 ? vector.map((value) => value / Math.sqrt(squares)) : vector;
}

/**
 * The vector of a text, of length 1; zeros if it has no letters.
 * @param {string} text
 * @param {number} dimensions
 */
export function embed(text, dimensions) {
  const vector = new Float32Array(dimensions);
  for (const word of text.toLowerCase().match(/[a-z]+/g) ?? []) {
    add(
      vector,
      once(`<${word}>`, dimensions, () => wordVector(word, dimensions)),
      1,
    );
  }
  return unit(vector);
}

/**
 * The name and the record of a card.
 * @param {number} row
 */
function record(row) {
  const mixed = Math.imul(row + 1, 2654435761) >>> 0;
  /** @param {string[]} words @param {number} n */
  const pick = (words, n) => /** @type {string} */ (words[n % words.length]);
  const words = [pick(ADJECTIVES, mixed), pick(NOUNS, mixed >>> 7), "of", pick(PLACES, mixed >>> 17)];
  const name = words.map((word) => (word === "of" ? word : word.charAt(0).toUpperCase() + word.slice(1))).join(" ");
  return { name, colour: pick(COLOURS, mixed >>> 23), number: row + 1 };
}

/**
 * Rows and their description, as `embeddings.i8bin` and `meta.json` have them.
 * @param {number} count
 * @param {number} dimensions
 */
export function makeCards(count, dimensions) {
  const codes = new Int8Array(count * dimensions);
  const records = Array.from({ length: count }, (_, row) => record(row));
  for (const [row, { name }] of records.entries()) {
    const values = embed(name, dimensions);
    // Cards of one name are not quite the same.
    let state = row + 1;
    for (let i = 0; i < dimensions; i++) {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      values[i] = /** @type {number} */ (values[i]) + (state / 2 ** 31 - 1) * 0.01;
    }
    const made = unit(values);
    for (let i = 0; i < dimensions; i++) {
      codes[row * dimensions + i] = Math.round(/** @type {number} */ (made[i]) * 127);
    }
  }
  const quantization = { dtype: "int8", scale_factor: 127, original_dtype: "float32", note: "divide by 127" };
  const meta = { version: "1.0", quantization, shape: [count, dimensions], records };
  return { bytes: new Uint8Array(codes.buffer), meta };
}
