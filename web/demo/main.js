// @ts-check
import { loadEmbeddings } from "weighbridge";
import { embed } from "./sample.js";

/** @typedef {{ name: string, colour: string, number: number }} Card */

const SHOWN = 12;
const COLOURS = { white: "#d9cfae", blue: "#3d7fc4", black: "#5d5566", red: "#c8503c", green: "#3f9058" };

const query = /** @type {HTMLInputElement} */ (document.getElementById("query"));
const status = /** @type {HTMLElement} */ (document.getElementById("status"));
const progress = /** @type {HTMLProgressElement} */ (document.getElementById("progress"));
const list = /** @type {HTMLOListElement} */ (document.getElementById("hits"));
const colours = /** @type {HTMLFieldSetElement} */ (document.getElementById("colours"));

const folder = new URLSearchParams(location.search).get("folder") ?? "/sample";

try {
  const cards = await loadEmbeddings(`${folder}/embeddings.i8bin`, `${folder}/meta.json`, {
    onProgress: ({ loaded, total }) => {
      progress.value = total ? loaded / total : 0;
      status.textContent = `Loading: ${megabytes(loaded)}`;
    },
  });
  progress.hidden = true;
  start(cards);
} catch (error) {
  progress.hidden = true;
  status.className = "failed";
  status.textContent = error instanceof Error ? error.message : String(error);
}

/** @param {number} bytes */
function megabytes(bytes) {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

/** @param {import("weighbridge").Embeddings} cards */
function start(cards) {
  /** The card that was chosen, if the search is not by name. */
  let chosen = -1;

  for (const colour of ["any", ...Object.keys(COLOURS)]) {
    const label = document.createElement("label");
    const input = Object.assign(document.createElement("input"), { type: "radio", name: "colour", value: colour });
    input.checked = colour === "any";
    label.append(input, ` ${colour}`);
    colours.append(label);
  }

  function find() {
    const text = query.value.trim();
    const vector = chosen >= 0 ? cards.row(chosen) : embed(text || "dragon", cards.dimensions);
    if (vector.every((value) => value === 0)) {
      status.textContent = "Type some letters.";
      list.replaceChildren();
      return;
    }
    const colour = colours.querySelector("input:checked")?.getAttribute("value") ?? "any";
    const isWanted = (/** @type {Record<string, unknown> | undefined} */ record) => record?.colour === colour;
    const begin = performance.now();
    const hits = cards.search(vector, SHOWN, colour === "any" ? {} : { filter: isWanted });
    const took = performance.now() - begin;
    const what = chosen >= 0 ? `near “${cardOf(chosen).name}”` : text === "" ? "near “dragon”" : `like “${text}”`;
    status.textContent =
      `${hits.length} cards ${what}, of ${cards.count.toLocaleString("en")}, in ${took.toFixed(1)} ms; ` +
      `${megabytes(cards.length)} of rows in ${megabytes(cards.memory)} of memory`;
    list.replaceChildren(...hits.map((hit) => item(hit.row, hit.score)));
  }

  /** @param {number} row */
  function cardOf(row) {
    return /** @type {Card} */ (cards.record(row) ?? { name: `card ${row}`, colour: "white", number: row });
  }

  /**
   * @param {number} row
   * @param {number} score
   */
  function item(row, score) {
    const { name, colour, number } = cardOf(row);
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.row = String(row);
    button.style.setProperty("--colour", COLOURS[/** @type {keyof typeof COLOURS} */ (colour)] ?? "gray");
    for (const [kind, text] of [
      ["colour", ""],
      ["name", name],
      ["score", score.toFixed(4)],
      ["about", `${colour}, number ${number}`],
    ]) {
      button.append(Object.assign(document.createElement("span"), { className: kind, textContent: text }));
    }
    button.addEventListener("click", () => {
      chosen = row;
      query.value = "";
      find();
      /** @type {HTMLElement | null} */ (list.querySelector("button"))?.focus();
    });
    const entry = document.createElement("li");
    entry.append(button);
    return entry;
  }

  query.addEventListener("input", () => {
    chosen = -1;
    find();
  });
  colours.addEventListener("change", find);
  document.addEventListener("keydown", (event) => {
    const buttons = [...list.querySelectorAll("button")];
    const at = buttons.indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    if (event.key === "/" && document.activeElement !== query) {
      event.preventDefault();
      query.focus();
    } else if (event.key === "Escape") {
      chosen = -1;
      query.value = "";
      query.focus();
      find();
    } else if (step !== undefined && (at >= 0 || (event.key === "ArrowDown" && document.activeElement === query))) {
      event.preventDefault();
      (buttons[at + step] ?? (at + step < 0 ? query : buttons.at(-1)))?.focus();
    }
  });
  query.focus();
  find();
}
