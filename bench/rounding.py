#!/usr/bin/env python3
"""What vectors cost in each format, and which of their neighbours stay: bytes a row, and recall at 10.

    python bench/rounding.py --model minilm           # needs weighbridge; pyarrow and pylance are measured where installed

The texts are first paragraphs of docstrings of Python's standard library. Recall is the share of the ten nearest rows in f32 that
are found; "then f32" takes a hundred candidates from the small file and puts them in order by the f32 vectors.
"""

from __future__ import annotations

import argparse
import ast
import sysconfig
import tempfile
from pathlib import Path

import numpy as np

import weighbridge

K, CANDIDATES = 10, 100


def texts(count: int) -> list[str]:
    found: dict[str, None] = {}
    for path in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")):
        if "site-packages" in path.parts or "lib2to3" in path.parts:
            continue
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                said = " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
                if 5 <= len(said.split()) <= 60:
                    found[said] = None
    # Not in the order of the files, so that neighbours are no neighbours in the list.
    return sorted(found, key=lambda text: (hash_of(text), text))[:count]


def hash_of(text: str) -> int:
    import zlib

    return zlib.crc32(text.encode())


def recall(rows: np.ndarray, scores: np.ndarray, exact: np.ndarray, queries: np.ndarray) -> tuple[float, float]:
    """The share of the exact ones that are the best by these scores, and that are found among candidates."""
    order = np.argsort(-scores, axis=1, kind="stable")
    direct = again = 0
    for query, near, right in zip(queries, order, exact, strict=True):
        near = near[near != query]
        candidates = near[:CANDIDATES]
        best = candidates[np.argsort(-(rows[candidates] @ rows[query]), kind="stable")[:K]]
        direct += len(set(near[:K]) & set(right))
        again += len(set(best) & set(right))
    return direct / exact.size, again / exact.size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--texts", type=int, default=8000)
    parser.add_argument("--queries", type=int, default=1000)
    args = parser.parse_args()
    known = texts(args.texts)
    rows = weighbridge.Encoder(args.model).encode(known, normalize_embeddings=True)
    count, dim = rows.shape
    queries = np.linspace(0, count - 1, min(args.queries, count)).astype(int)
    exact = np.argsort(-(rows[queries] @ rows.T), axis=1, kind="stable")
    exact = np.array([near[near != query][:K] for query, near in zip(queries, exact, strict=True)])
    print(f"{count} rows of {dim} values, {len(queries)} queries")

    files = {}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name in ("a.npy", "b.f32bin", "c.safetensors", "d.i8bin", "e.jsonl"):
            weighbridge.save(place / name, {"embeddings": rows}, allow_loss=True)
            files[name] = (place / name).stat().st_size / count
        small = weighbridge.load(place / "d.i8bin")["embeddings"].astype(np.float32)
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq

            table = pa.table({"vector": pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), dim)})
            pq.write_table(table, place / "rows.parquet")
            files["rows.parquet"] = (place / "rows.parquet").stat().st_size / count
            import lance

            lance.write_dataset(table, str(place / "rows.lance"))
            sizes = [file.stat().st_size for file in (place / "rows.lance").rglob("*") if file.is_file()]
            files["rows.lance"] = sum(sizes) / count
        except ImportError as error:
            print(f"not measured: {error}")
    for name, size in files.items():
        print(f"{name}: {size:.1f} bytes a row")

    bits = weighbridge.quantize_embeddings(rows, "ubinary")
    unpacked = np.unpackbits(bits, axis=1).astype(np.float32)
    half = rows.astype(np.float16).astype(np.float32)
    agree = unpacked[queries] @ unpacked.T + (1 - unpacked[queries]) @ (1 - unpacked).T
    print("| rows | bytes | recall at 10 | then f32 |\n|---|---:|---:|---:|")
    for name, size, scores in (
        ("f16", 2 * dim, rows[queries] @ half.T),
        ("int8, i8bin", dim, rows[queries] @ (small / np.linalg.norm(small, axis=1, keepdims=True)).T),
        ("a bit a value", dim // 8, agree),
    ):
        direct, again = recall(rows, scores, exact, queries)
        print(f"| {name} | {size} | {direct:.4f} | {again:.4f} |")


if __name__ == "__main__":
    main()
