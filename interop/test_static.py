"""Static models against Model2Vec: it reads what `distill` writes and gives the same vectors, and what its own recipe
makes of the same vectors of tokens is what `distill` makes of them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from model2vec import StaticModel
from safetensors.numpy import load_file

from common import PROGRAM, ROOT, Case, data_folder, expanded, for_each, needs

FOLDER = data_folder("reference") / "minilm"
CACHE = ROOT / "target" / "interop-models"
TEXTS = [
    "A lorry loaded with 40 tonnes of gravel stands on the weighbridge.",
    "Why, naïve Straße-läufer; 東京 — 3.14?",
    "hello world",
    "",
    "🍕",
    "word " * 3000,
]

# (options of distill, how far vectors may be apart; Model2Vec computes the mean of f16 rows in f16)
STORED = {
    "f32": (["--dtype", "f32"], 1e-5),
    "f16": ([], 2e-3),
    "int8": (["--dtype", "int8", "--dimensions", "64"], 1e-5),
    "few tokens": (["--dtype", "f32", "--max-vocab", "9000"], 1e-5),
    "words": (["--dtype", "f32", "--vocab", "words.txt"], 1e-5),
}


@expanded
@needs(FOLDER)
class Static(Case):
    @classmethod
    def setUpClass(cls):
        # The Python that runs this has pip.
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        cls.environment = {**os.environ, "WEIGHBRIDGE_CACHE": str(CACHE), "PATH": path}
        cls.call("pull", "minilm")

    @classmethod
    def call(cls, *arguments):
        command = [str(PROGRAM), *map(str, arguments), "--json"]
        done = subprocess.run(command, capture_output=True, env=cls.environment, timeout=600)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    def vectors(self, model, texts):
        lines = self.call("embed", "--model", model, *texts).splitlines()
        return np.array([json.loads(line)["vector"] for line in lines], "f4")

    def distill(self, options):
        folder = self.folder / "static"
        words = self.path("words.txt")
        words.write_text("weighbridge\nLorry driver\nthe\n")
        options = [str(words) if option == "words.txt" else option for option in options]
        report = json.loads(self.call("distill", "--model", "minilm", "-o", folder, *options))
        return folder, report

    @for_each(STORED)
    def test_model2vec_reads(self, case):
        options, tolerance = STORED[case]
        folder, report = self.distill(options)
        theirs = StaticModel.from_pretrained(folder)
        assert len(theirs.tokens) == report["tokens"]
        assert theirs.dim == report["dimensions"]
        expected = theirs.encode(TEXTS).astype("f4")
        found = self.vectors(folder, TEXTS)
        assert found.shape == expected.shape
        assert np.abs(found - expected).max() <= tolerance
        # The same in one file.
        one = self.folder / "static.safetensors"
        self.call("convert", folder, one)
        assert np.array_equal(self.vectors(one, TEXTS), found)

    def test_the_recipe_is_model2vecs(self):
        """The rows are those that its PCA and its weights give, which are written down here as it computes them."""
        full, report = self.distill(["--dtype", "f32", "--dimensions", "384", "--sif", "0"])
        assert report["variance"] > 0.999999
        rows = load_file(full / "model.safetensors")["embeddings"].astype("f8")
        # Along all components nothing but the axes has changed, so that theirs are found again.
        centred = rows - rows.mean(axis=0)
        _, values, directions = np.linalg.svd(centred, full_matrices=False)
        places = np.arange(2, len(rows) + 2)
        shares = (1 / places) / np.sum(1 / places)
        weights = 1e-4 / (1e-4 + shares)
        expected = (centred @ directions[:32].T) * weights[:, None]
        for path in full.iterdir():
            path.unlink()
        full.rmdir()
        small, report = self.distill(["--dtype", "f32", "--dimensions", "32"])
        found = load_file(small / "model.safetensors")["embeddings"]
        # A component may point either way.
        signs = np.sign((found * expected).sum(axis=0))
        assert np.abs(found - expected * signs).max() <= 1e-4 * np.abs(expected).max()
        share = (values[:32] ** 2).sum() / (values**2).sum()
        assert abs(report["variance"] - share) < 1e-6
