"""Files of rows as the numpy exporter writes them, and the numpy lines that define them."""

import json

import numpy as np

from common import Case

NORMS = (0.992, 1.008)


def unit_rows(count, dim, seed=1, dtype="f4"):
    rows = np.random.default_rng(seed).normal(size=(count, dim))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(dtype)


def truncated(rows):
    """The exporter's own line."""
    return np.clip(rows * 127, -127, 127).astype(np.int8)


def nearest(rows):
    return np.clip(np.rint(rows * 127), -127, 127).astype(np.int8)


def decoded(codes):
    return codes.astype(np.float32) / np.float32(127)


def norms(values):
    return np.linalg.norm(values.astype(np.float64), axis=1)


def meta_of(codes, records, dtype="int8", scale=127):
    return {
        "version": "1.0",
        "quantization": {
            "dtype": dtype,
            "scale_factor": scale,
            "original_dtype": "float32",
            "note": "divide by 127",
        },
        "shape": list(codes.shape),
        "records": records,
    }


def records_of(count):
    # Unicode, escapes, numbers that a reader may round, and nothing at all.
    kinds = [
        {"name": "Æther Vial", "set": "dst", "image_url": "/cards/a?b=1&c=2"},
        {"name": "東京 \"quoted\" \\ \t\n", "price": 0.1, "big": 12345678901234567890},
        {"name": "😀", "nested": {"a": [1, 2.50, None, True]}},
        {},
    ]
    return [{"n": i, **kinds[i % len(kinds)]} for i in range(count)]


class RowsCase(Case):
    def save(self, array, name="source.npy"):
        np.save(self.path(name), array)
        return self.path(name)

    def export(self, codes, meta, folder="in", kind="i8bin", **style):
        """The two files as an exporter writes them."""
        path = self.path(f"{folder}/embeddings.{kind}")
        path.write_bytes(codes.tobytes())
        self.path(f"{folder}/meta.json").write_text(json.dumps(meta, **style), encoding="utf-8")
        return path

    def meta(self, folder):
        return json.loads(self.path(f"{folder}/meta.json").read_text(encoding="utf-8"))

    def codes(self, path, dim):
        return np.frombuffer(path.read_bytes(), np.int8).reshape(-1, dim)

    def quantize(self, rows, *options, source=None):
        source = source or self.save(rows)
        options = [*options, "--allow-loss", "--force"]
        return self.convert(source, "out/embeddings.i8bin", *options)

    def assert_same_files(self, found, expected):
        self.assert_same_bytes(found, expected)
        self.assert_same_bytes(found.parent / "meta.json", expected.parent / "meta.json")
