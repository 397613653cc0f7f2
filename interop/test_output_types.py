"""Vectors in fewer bits, and hashes: what NumPy and hashlib make of the same."""

import hashlib
import json

import numpy as np
from safetensors import safe_open

from common import Case

TEXTS = [f"truck {i % 90} of town number {i % 7}" for i in range(300)]


class OutputTypes(Case):
    def setUp(self):
        super().setUp()
        self.run_program("quickstart", self.folder / "samples", "--offline")
        self.texts = self.path("texts.txt")
        self.texts.write_text("\n".join(TEXTS) + "\n")

    def embed(self, name, *options):
        target = self.path(name)
        model = self.folder / "samples" / "hf-model"
        self.run_program("embed", "-m", model, "-i", self.texts, "-o", target, *options)
        return target

    def test_codes_are_those_of_the_formulas(self):
        """Those of quantize_embeddings of sentence-transformers 6.2."""
        floats = np.load(self.embed("floats.npy"))
        ranges = np.vstack((floats.min(axis=0), floats.max(axis=0)))
        steps = (ranges[1] - ranges[0]) / 255
        steps = np.where(steps == 0, 1, steps)
        codes = np.clip(np.floor((floats - ranges[0]) / steps), 0, 255)
        bits = np.packbits(floats > 0, axis=-1)
        expected = {
            "f32": floats,
            "f16": floats.astype(np.float16),
            "uint8": codes.astype(np.uint8),
            "int8": (codes - 128).astype(np.int8),
            "ubinary": bits,
            "binary": (bits - 128).astype(np.int8),
        }
        for kind, values in expected.items():
            found = np.load(self.embed(f"{kind}.npy", "--output-type", kind))
            self.assertEqual(found.dtype, values.dtype)
            self.assert_values(found, values, kind)
            path = self.embed(f"{kind}.safetensors", "--output-type", kind)
            with safe_open(path, framework="numpy") as file:
                self.assert_values(file.get_tensor("embeddings"), values, kind)
                about = json.loads(file.metadata()["embedding"])
            if kind.endswith("int8"):
                stored = about["output"]["ranges"]
                stored = np.array([stored["low"], stored["high"]], np.float32)
                self.assert_values(stored, ranges, kind)
                self.assert_values(np.load(self.path(f"{kind}.ranges.npy")), ranges, kind)
            # Merging codes in the same way.
            if kind == "int8":
                parts = [self.embed(f"p{i}.f32bin", "--shard", f"{i}/3") for i in (1, 2, 3)]
                merged = self.path("merged.npy")
                self.run_program("merge", merged, *parts, "--output-type", kind)
                self.assert_values(np.load(merged), values, kind)

    def test_hashes_are_those_of_hashlib(self):
        path = self.embed("part.f32bin", "--shard", "2/4")
        manifest = json.loads(self.path("part.f32bin.manifest.json").read_text())
        for file in manifest["files"]:
            found = hashlib.sha256(self.path(file["name"]).read_bytes()).hexdigest()
            self.assertEqual(found, file["sha256"], file)
        self.assertEqual(len(manifest["files"]), 3)
        records = "".join(json.dumps({"text": text}) + "\n" for text in TEXTS)
        self.assertEqual(manifest["input"]["sha256"], hashlib.sha256(records.encode()).hexdigest())
        hashes = self.path("part.f32bin.hashes").read_bytes()
        expected = b"".join(hashlib.sha256(text.encode()).digest()[:16] for text in TEXTS[1::4])
        self.assertEqual(hashes, expected)
        self.assertEqual(np.fromfile(path, "<f4").reshape(-1, 32).shape[0], len(TEXTS[1::4]))
