"""Texts to vectors against sentence-transformers: its vectors of many texts, made with the real model.

The texts and vectors are no part of the project, see `data_folder` and `needs`. The model comes from
PyPI, as `weighbridge pull minilm` gets it, and is kept for the next run and for the Rust tests.
"""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

import numpy as np

from common import PROGRAM, ROOT, Case, data_folder, expanded, for_each, needs

FOLDER = data_folder("reference") / "minilm"
CACHE = ROOT / "target" / "interop-models"

# (options of quantize, options of embed, smallest cosine of any text, of all on average)
ROUNDED = {
    "f32 in integers": (None, ["--precision", "q8"], 0.999, 0.9997),
    "f32 in bf16": (None, ["--precision", "bf16"], 0.9999, 0.9999),
    "q8": (["--method", "q8"], [], 0.9995, 0.9998),
    "q8 in bf16": (["--method", "q8"], ["--precision", "bf16"], 0.9995, 0.9998),
    "q8 in integers": (["--method", "q8"], ["--precision", "q8"], 0.999, 0.9995),
    "k6": (["--method", "k6"], [], 0.98, 0.998),
    "k4": (["--method", "k4"], [], 0.8, 0.97),
}


def cosines(found, expected):
    found, expected = found.astype("f8"), expected.astype("f8")
    lengths = np.linalg.norm(found, axis=1) * np.linalg.norm(expected, axis=1)
    return (found * expected).sum(axis=1) / lengths


@expanded
@needs(FOLDER)
class Encoder(Case):
    @classmethod
    def setUpClass(cls):
        # The Python that runs this has pip.
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        cls.environment = {**os.environ, "WEIGHBRIDGE_CACHE": str(CACHE), "PATH": path}
        os.environ["WEIGHBRIDGE_CACHE"] = str(CACHE)
        command = [str(PROGRAM), "pull", "minilm", "--json"]
        done = subprocess.run(command, capture_output=True, env=cls.environment, timeout=600)
        assert done.returncode == 0, done.stderr.decode()
        cls.model = json.loads(done.stdout)["model"]
        cls.texts = json.loads((FOLDER / "texts.json").read_text())
        cls.vectors = np.load(FOLDER / "vectors.npy")
        assert len(cls.texts) == 220 and cls.vectors.shape == (220, 384)

    def lines(self, texts):
        path = self.path("texts.jsonl")
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        return path

    def embed(self, model, texts, *options):
        """The vectors of texts, by way of JSON lines: texts with line breaks go that way too."""
        out = self.path("out/vectors.npy")
        self.run_program("embed", "-m", model, "-i", self.lines(texts), "-o", out, "--force", *options)
        return np.load(out)

    def assert_reference(self, vectors):
        self.assertEqual(vectors.shape, self.vectors.shape)
        self.assertGreaterEqual(cosines(vectors, self.vectors).min(), 0.99999)
        self.assertLessEqual(np.abs(vectors - self.vectors).max(), 1e-5)

    def test_by_name(self):
        self.assert_reference(self.embed("minilm", self.texts))

    @for_each(["model.weights", "model.mcf", "model.oinf", "model.safetensors"])
    def test_from(self, name):
        model = self.convert(self.model, name)
        self.assert_reference(self.embed(model, self.texts))

    @for_each([["--batch", "1"], ["--batch", "7", "--threads", "1"], ["--threads", "3"]])
    def test_alike_with(self, options):
        texts = self.texts[100:]
        together = self.embed(self.model, texts)
        apart = self.embed(self.model, texts[::-1], *options)[::-1]
        self.assertLessEqual(np.abs(together - apart).max(), 1e-6)

    @for_each(ROUNDED)
    def test_rounded(self, name):
        quantize, options, worst, mean = ROUNDED[name]
        model = self.model
        if quantize:
            model = self.path("model.mcf")
            self.run_program("quantize", self.model, model, *quantize)
        found = cosines(self.embed(model, self.texts, *options), self.vectors)
        self.assertGreaterEqual(found.min(), worst)
        self.assertGreaterEqual(found.mean(), mean)

    def test_tokens(self):
        ids = np.load(FOLDER / "token_ids.npy")
        seen = 0
        for text, row in zip(self.texts, ids):
            if "\0" in text:
                # Not possible as an argument; their vectors are compared above.
                continue
            done = self.run_program("tokenize", "-m", self.model, "--json", "--", text)
            self.assertEqual(json.loads(done.stdout)["ids"], row[row >= 0].tolist(), text)
            seen += 1
        self.assertGreaterEqual(seen, 210)

    def test_truncated_dimensions_and_raw_lengths(self):
        texts = self.texts[:20]
        few = self.embed(self.model, texts, "--dimensions", "64")
        expected = self.vectors[:20, :64]
        expected = expected / np.linalg.norm(expected, axis=1, keepdims=True)
        self.assertLessEqual(np.abs(few - expected).max(), 1e-5)
        raw = self.embed(self.model, texts, "--no-normalize")
        unit = raw / np.linalg.norm(raw, axis=1, keepdims=True)
        self.assertLessEqual(np.abs(unit - self.vectors[:20]).max(), 1e-5)
        self.assertGreater(np.abs(np.linalg.norm(raw, axis=1) - 1).min(), 0.01)


if __name__ == "__main__":
    unittest.main()
