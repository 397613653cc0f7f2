"""Vectors to rows, against numpy."""

from __future__ import annotations

import multiprocessing
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weighbridge


def test_the_nearest_rows_are_found(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    rows, queries = random.normal(size=(300, 16)).astype(np.float32), random.normal(size=(5, 16)).astype(np.float32)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    scores = {
        "cosine": queries / np.linalg.norm(queries, axis=1, keepdims=True) @ unit.T,
        "dot": queries @ rows.T,
        "l2": -np.linalg.norm(queries[:, None] - rows[None], axis=2),
    }
    weighbridge.save(tmp_path / "a.npy", {"matrix": rows})
    for source in (rows, tmp_path / "a.npy", str(tmp_path / "a.npy")):
        for metric, expected in scores.items():
            index = weighbridge.Index(source, metric=metric)
            found, places = index.search(queries, 7)
            best = np.argsort(-expected, axis=1)[:, :7]
            assert np.array_equal(places, best) and found.dtype == np.float32 and places.dtype == np.int64
            assert np.allclose(found, np.take_along_axis(expected, best, 1), atol=1e-5)
            one, place = index.search(queries[0], 1)
            assert one.shape == (1,) and place[0] == best[0, 0]
    assert weighbridge.Index(rows).search(queries, 1000)[1].shape == (5, 300)
    with pytest.raises(ValueError):
        weighbridge.Index(rows).search(queries[:, :3])
    hits = weighbridge.semantic_search(queries, rows, top_k=2)
    assert [hit["corpus_id"] for hit in hits[0]] == np.argsort(-scores["cosine"][0])[:2].tolist()


def test_records_filter(tmp_path: Path) -> None:
    rows = np.eye(4, dtype=np.float32)
    records = [{"kind": "odd" if i % 2 else "even", "i": i} for i in range(4)]
    weighbridge.save(tmp_path / "a.i8bin", {"matrix": rows}, records=records, allow_loss=True)
    index = weighbridge.Index(tmp_path / "a.i8bin")
    _, found = index.search(rows[0], filter=["kind=odd"])
    assert set(found.tolist()) == {1, 3} and index.record(3) == records[3]


def test_texts_are_asked_of_files_that_name_their_model(minilm: Path, tmp_path: Path) -> None:
    import subprocess
    import sys

    texts = ["Lorries are weighed.", "Cats sleep.", "It rains in spring."]
    (tmp_path / "texts.txt").write_text("\n".join(texts))
    made = subprocess.run(
        [sys.executable, "-m", "weighbridge", "embed", "--model", minilm, "-i", "texts.txt", "-o", "rows.npy"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    made = subprocess.run(
        [sys.executable, "-m", "weighbridge", "embed", "--model", minilm, "-i", "texts.txt", "-o", "rows.safetensors"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    index = weighbridge.Index(tmp_path / "rows.safetensors")
    _, found = index.search("a heavy truck", 1)
    assert found.tolist() == [0]
    # Neither the threads of its model nor the file go along: a child opens what it needs.
    for way in ("fork", "spawn"):
        context = multiprocessing.get_context(way)
        queue = context.Queue()
        process = context.Process(target=in_another_process, args=(index, queue))
        process.start()
        assert queue.get(timeout=60) == [1], way
        process.join(60)


def in_another_process(index: weighbridge.Index, queue: Any) -> None:
    queue.put(index.search("pets", 1)[1].tolist())


def test_indexes_of_files_can_be_pickled(tmp_path: Path) -> None:
    rows = np.eye(3, dtype=np.float32) * [[1], [2], [3]]
    weighbridge.save(tmp_path / "a.safetensors", {"x": rows.astype(np.float32), "y": rows.astype(np.float32)[::-1].copy()})
    index = pickle.loads(pickle.dumps(weighbridge.Index(tmp_path / "a.safetensors", tensor="y", metric="dot")))
    assert (index.metric, index.search([1, 1, 1], 1)[1].tolist()) == ("dot", [0])
    with pytest.raises(TypeError, match="array"):
        pickle.dumps(weighbridge.Index(rows))


def test_odd_questions(minilm: Path, tmp_path: Path) -> None:
    index = weighbridge.Index([[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    assert index.search([0, 0, 1], 1)[1].tolist() == [2]
    assert index.search([])[1].shape == (0, 3) and index.search(np.zeros((0, 3)))[1].shape == (0, 3)
    assert weighbridge.Index(np.eye(6)[::2, ::2]).search(np.array([0, 1, 0], ">f8"), 1)[1].tolist() == [1]
    for wrong in (lambda: index.search([1, 0]), lambda: index.search([1, 0, 0], 0), lambda: index.search([1, 0, 0], -1),
                  lambda: index.search([np.nan, 0, 0]), lambda: index.search("a text"), lambda: index.search([1, 0, 0], filter="x"),
                  lambda: weighbridge.Index(np.ones(3)), lambda: weighbridge.Index(np.eye(2), metric="none").search([1, 0])):  # fmt: skip
        with pytest.raises(ValueError):
            wrong()
    for row in (-1, 3):
        with pytest.raises(IndexError):
            index.word(row)
        with pytest.raises(IndexError):
            index.record(row)
    # Rows that don't say their model can be told one.
    encoder = weighbridge.Encoder(minilm)
    weighbridge.save(tmp_path / "rows.npy", {"rows": encoder.encode(["Lorries are weighed.", "Cats sleep."])})
    assert weighbridge.Index(tmp_path / "rows.npy", model=minilm).search(["a heavy truck"], 1)[1].tolist() == [[0]]
