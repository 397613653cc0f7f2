#!/usr/bin/env python3
"""Static models distilled by `weighbridge distill` and by Model2Vec from the same sentence model: how much of what the model finds
they find, and how long it took.

    python bench/distill.py --model minilm --program target/release/weighbridge    # needs weighbridge and model2vec[distill]

The model is a folder as Hugging Face has them. Texts are those of rounding.py. *Nearest*: the share of the ten nearest texts that the
model itself has for a text. *Order*: the rank correlation of a text's cosines with all others, on average.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from model2vec import StaticModel
from model2vec.distill import distill

import weighbridge
from rounding import K, texts


def cosines(vectors: np.ndarray) -> np.ndarray:
    vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    found = vectors @ vectors.T
    np.fill_diagonal(found, -2)
    return found


def agreement(vectors: np.ndarray, teacher: np.ndarray) -> tuple[float, float]:
    ours = cosines(vectors)
    near, right = (np.argsort(-side, axis=1, kind="stable")[:, :K] for side in (ours, teacher))
    shared = sum(len(set(a) & set(b)) for a, b in zip(near, right, strict=True)) / near.size
    ranks = [side.argsort(axis=1).argsort(axis=1).astype("f8") for side in (ours, teacher)]
    ranks = [side - side.mean(axis=1, keepdims=True) for side in ranks]
    products = [(a * b).sum(axis=1) for a, b in ((ranks[0], ranks[1]), (ranks[0], ranks[0]), (ranks[1], ranks[1]))]
    return shared, float((products[0] / np.sqrt(products[1] * products[2])).mean())


def timed(work: Callable[[], object]) -> tuple[float, object]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    arguments.add_argument("--model", required=True, help="a folder with a sentence model")
    arguments.add_argument("--program", default="weighbridge", help="the program")
    arguments.add_argument("--texts", type=int, default=2000, help="how many texts")
    arguments.add_argument("--dimensions", type=int, nargs="*", default=[256, 104])
    asked = arguments.parse_args()
    known = texts(asked.texts)
    teacher = cosines(weighbridge.Encoder(asked.model).encode(known))
    print(f"{len(known)} texts, the model {asked.model}\n\n| made by | values | nearest | order | seconds |\n|---|---:|---:|---:|---:|")
    for dimensions in asked.dimensions:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "static.safetensors"
            command = [asked.program, "distill", "--model", asked.model, "--dimensions", str(dimensions), "--dtype", "f32", "-q", "-o", out]
            took, _ = timed(lambda: subprocess.run(command, check=True))
            ours = weighbridge.Encoder(str(out)).encode(known)
        seconds, static = timed(lambda: distill(asked.model, pca_dims=dimensions, device="cpu"))
        assert isinstance(static, StaticModel)
        sides = [("weighbridge", ours, took), ("Model2Vec", static.encode(known), seconds)]
        for name, vectors, spent in sides:
            nearest, order = agreement(np.asarray(vectors, "f4"), teacher)
            print(f"| {name} | {dimensions} | {nearest:.3f} | {order:.3f} | {spent:.0f} |", flush=True)


if __name__ == "__main__":
    main()
