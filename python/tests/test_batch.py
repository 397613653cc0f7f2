"""Batches of every kind: the vectors are those of the encoder, and what is odd is refused or has nothing. The engines
themselves are tried by interop/run --all."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weighbridge
from weighbridge.batch import Embed, Search

TEXTS = ["a full truck, with hay", "it rains", "", "the driver said: it is empty"]


@pytest.fixture(scope="module")
def model(samples: Path) -> Path:
    return samples / "hf-model"


@pytest.fixture(scope="module")
def vectors(model: Path) -> np.ndarray:
    return weighbridge.Encoder(model).encode_document(TEXTS)


def test_a_dict_of_arrays(model: Path, vectors: np.ndarray) -> None:
    embed = Embed(model)
    for texts in (np.array(TEXTS), np.array(TEXTS, object), list(TEXTS)):
        batch = {"id": np.arange(4), "text": texts}
        made = embed(batch)
        assert list(made) == ["id", "text", "vector"] and list(batch) == ["id", "text"]
        assert made["vector"].dtype == np.float32 and np.array_equal(made["vector"], vectors)
    assert embed.dimensions == vectors.shape[1]


def test_arrow(model: Path, vectors: np.ndarray) -> None:
    pa = pytest.importorskip("pyarrow")
    embed = Embed(model, text="t", vector="v")
    table = pa.table({"id": [1, 2, 3, 4], "t": TEXTS}, metadata={"a": "b"})
    made = embed(table)
    kind = pa.list_(pa.float32(), vectors.shape[1])
    assert isinstance(made, pa.Table) and made.schema.field("v").type == kind
    assert made.schema == embed.schema(table.schema) and made.schema.metadata == {b"a": b"b"}
    assert np.array_equal(np.stack(made["v"].to_pylist()), vectors)
    # Texts of other types, in pieces, and a part of a table.
    for other in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())):
        column = pa.chunked_array([pa.array(TEXTS[:1], other), pa.array(TEXTS[1:], other)])
        assert np.array_equal(np.stack(embed(pa.table({"t": column}))["v"].to_pylist()), vectors)
    assert np.array_equal(np.stack(embed(table.slice(1, 2))["v"].to_pylist()), vectors[1:3])
    (batch,) = table.to_batches()
    assert isinstance(embed(batch), pa.RecordBatch) and embed(batch).column("v").type == kind
    # A column alone.
    assert embed(pa.array(TEXTS)).equals(embed(batch).column("v"))


def test_pandas(model: Path, vectors: np.ndarray) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"id": range(4), "text": TEXTS}, index=[7, 5, 3, 3])
    made = Embed(model)(frame)
    assert isinstance(made, pd.DataFrame) and list(made.columns) == ["id", "text", "vector"]
    assert list(made.index) == [7, 5, 3, 3] and list(frame.columns) == ["id", "text"]
    assert all(vector.dtype == np.float32 for vector in made["vector"])
    assert np.array_equal(np.stack(made["vector"]), vectors)
    frame = pd.DataFrame({"text": [TEXTS[0], None, np.nan, TEXTS[3]]})
    missing = Embed(model)(frame)["vector"].tolist()
    assert np.isnan(missing[1]).all() and np.isnan(missing[2]).all() and np.array_equal(missing[3], vectors[3])
    missing = Embed(model, missing="null")(frame)["vector"].tolist()
    assert missing[1] is None and missing[2] is None and np.array_equal(missing[3], vectors[3])


def test_rows_without_text_have_no_vector(model: Path, vectors: np.ndarray) -> None:
    embed = Embed(model)
    made = embed({"text": np.array([None, TEXTS[1], float("nan"), TEXTS[3]], object)})["vector"]
    assert np.isnan(made[[0, 2]]).all() and np.array_equal(made[[1, 3]], vectors[[1, 3]])
    assert np.isnan(embed({"text": [None, None]})["vector"]).all()
    with pytest.raises(weighbridge.RefusedError, match="row 1 of the batch has no text"):
        Embed(model, precision="ubinary")({"text": np.array(["a", None], object)})
    with pytest.raises(weighbridge.RefusedError, match="no null"):
        Embed(model, missing="null")({"text": np.array([None, "a"], object)})
    pa = pytest.importorskip("pyarrow")
    for column in (pa.array([None, TEXTS[1]]), pa.chunked_array([pa.array([None], pa.string()), pa.array([TEXTS[1]])])):
        made = embed(pa.table({"text": column}))["vector"]
        assert made.null_count == 0 and np.isnan(made[0].as_py()).all() and np.array_equal(made[1].as_py(), vectors[1])
        made = Embed(model, missing="null")(pa.table({"text": column}))["vector"]
        assert made.null_count == 1 and np.array_equal(made[1].as_py(), vectors[1])
    bits = Embed(model, missing="null", precision="ubinary")
    assert bits(pa.table({"text": pa.nulls(3)}))["vector"].null_count == 3


def test_what_goes_to_parquet_comes_back(model: Path, vectors: np.ndarray, tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(Embed(model)(pa.table({"text": [None, TEXTS[1]]})), tmp_path / "a.parquet")
    made = pq.read_table(tmp_path / "a.parquet")
    assert made.schema.field("vector").type == pa.list_(pa.float32(), vectors.shape[1])
    found = Search(vectors, k=1)(made)
    assert found["rows"].to_pylist() == [[-1], [1]]


def test_empty_batches_have_their_types(model: Path, vectors: np.ndarray) -> None:
    embed, dim = Embed(model), vectors.shape[1]
    for texts in ([], np.array([]), np.array([], object), np.array([], str)):
        made = embed({"text": texts})["vector"]
        assert made.shape == (0, dim) and made.dtype == np.float32
    pa = pytest.importorskip("pyarrow")
    made = embed(pa.table({"text": pa.array([], pa.string())}))
    assert made.num_rows == 0 and made.schema.field("vector").type == pa.list_(pa.float32(), dim)
    pd = pytest.importorskip("pandas")
    assert list(embed(pd.DataFrame({"text": []})).columns) == ["text", "vector"]


def test_the_options_are_those_of_the_encoder(model: Path, minilm: Path, tmp_path: Path) -> None:
    encoder, batch = weighbridge.Encoder(model), {"text": np.array(TEXTS)}
    short = Embed(model, truncate_dim=8, normalize=True)(batch)["vector"]
    assert np.array_equal(short, encoder.encode(TEXTS, truncate_dim=8, normalize_embeddings=True))
    assert np.array_equal(Embed(model, prompt="x: ")(batch)["vector"], encoder.encode(TEXTS, prompt="x: "))
    bits = Embed(model, precision="ubinary")
    assert np.array_equal(bits(batch)["vector"], encoder.encode(TEXTS, precision="ubinary")) and bits.dimensions == 4
    ranges = np.array([[-1.0], [1.0]]) * np.ones(32)
    codes = Embed(model, precision="int8", ranges=ranges)
    # The same text has the same codes, whatever is beside it.
    assert np.array_equal(codes(batch)["vector"][1:2], codes({"text": TEXTS[1:2]})["vector"])
    rounded = Embed(minilm, compute="q8", threads=None)(batch)["vector"]
    assert np.array_equal(rounded, weighbridge.Encoder(minilm, compute="q8").encode(TEXTS))


def test_prompts(model: Path, tmp_path: Path) -> None:
    import json
    import shutil

    shutil.copytree(model, tmp_path / "model")
    prompts = {"query": "question: ", "document": "passage: ", "other": "other: "}
    (tmp_path / "model/config_sentence_transformers.json").write_text(json.dumps({"prompts": prompts}))
    encoder, batch = weighbridge.Encoder(tmp_path / "model"), {"text": np.array(TEXTS)}
    for said, prompt in (({}, "passage: "), ({"purpose": "query"}, "question: "), ({"prompt_name": "other"}, "other: "),
                         ({"purpose": None}, ""), ({"prompt": "own: ", "prompt_name": "other"}, "own: ")):  # fmt: skip
        found = Embed(tmp_path / "model", **said)(batch)["vector"]
        assert np.array_equal(found, encoder.encode([prompt + text for text in TEXTS])), said


def test_what_is_wrong_is_said(model: Path, tmp_path: Path) -> None:
    embed = Embed(model)
    for batch, message in (
        ({"body": np.array(TEXTS)}, "no column 'text': body"),
        ({}, "no column 'text'"),
        ({"text": np.arange(3)}, "int64, not texts"),
        ({"text": np.array([b"bytes"])}, "not texts"),
        ({"text": np.array(["a", 3], object)}, "int in row 1"),
        ({"text": np.array(TEXTS), "vector": np.zeros(4)}, "has a column 'vector' already"),
    ):
        with pytest.raises(weighbridge.RefusedError, match=message):
            embed(batch)
    for batch in (TEXTS, "a text", None, 3):
        with pytest.raises(TypeError):
            embed(batch)
    for said in ({"precision": "int8"}, {"truncate_dim": 0}, {"purpose": "both"}, {"missing": "no"}, {"prompt_name": "absent"},
                 {"precision": "int7"}, {"compute": "f64"}, {"threads": 0}):  # fmt: skip
        with pytest.raises(ValueError):
            Embed(model, **said)
    with pytest.raises(weighbridge.NotFound):
        Embed(tmp_path / "absent")
    pa = pytest.importorskip("pyarrow")
    for wrong in (pa.array([1, 2]), pa.array([b"a"]), pa.array([["a"]]), pa.array([1.5]).dictionary_encode()):
        with pytest.raises(weighbridge.RefusedError, match="not texts"):
            embed(pa.table({"text": wrong}))


def test_it_is_sent_to_other_processes(model: Path, vectors: np.ndarray) -> None:
    embed = Embed(model, vector="v")
    sent = pickle.dumps(embed)
    # What is sent is small: the model is opened over there, when it is used.
    assert len(sent) < 2000 and pickle.loads(sent)._opened is None
    assert np.array_equal(pickle.loads(sent)({"text": TEXTS})["v"], vectors)
    assert repr(model.name) in repr(embed) or model.name in repr(embed)
    for way in ("fork", "spawn"):
        context = multiprocessing.get_context(way)
        queue = context.Queue()
        process = context.Process(target=in_another_process, args=(embed, queue))
        process.start()
        assert np.array_equal(queue.get(timeout=60), vectors), way
        process.join(60)
        assert process.exitcode == 0


def in_another_process(embed: Embed, queue: Any) -> None:
    queue.put(embed({"text": TEXTS})["v"])


ROWS = np.random.default_rng(1).normal(size=(50, 16)).astype(np.float32)


def test_search(tmp_path: Path) -> None:
    weighbridge.save(tmp_path / "rows.npy", {"rows": ROWS})
    scores, rows = weighbridge.Index(ROWS).search(ROWS[:4], 5)
    for search in (Search(tmp_path / "rows.npy", k=5), pickle.loads(pickle.dumps(Search(ROWS, k=5)))):
        made = search({"vector": ROWS[:4]})
        assert list(made) == ["vector", "rows", "scores"]
        assert np.array_equal(made["rows"], rows) and np.array_equal(made["scores"], scores)
    some = np.array([None, *ROWS[:2]], object)
    made = Search(ROWS, k=100)({"vector": some})
    assert made["rows"].shape == (3, 50) and (made["rows"][0] == -1).all() and np.isnan(made["scores"][0]).all()
    assert made["rows"][1, 0] == 0
    odd = np.concatenate([ROWS[:1], np.full((1, 16), np.nan)])
    assert Search(ROWS, k=1)({"vector": odd})["rows"].tolist() == [[0], [-1]]
    assert Search(ROWS, k=5)({"vector": np.zeros((0, 16))})["rows"].shape == (0, 5)
    dot = Search(ROWS, k=5, metric="dot")({"vector": ROWS[:4]})
    assert np.array_equal(dot["rows"], weighbridge.Index(ROWS, metric="dot").search(ROWS[:4], 5)[1])


def test_search_in_tables_and_frames() -> None:
    pa, pd = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
    scores, rows = weighbridge.Index(ROWS).search(ROWS[:4], 5)
    search, lists = Search(ROWS, k=5), [row.tolist() for row in ROWS[:4]]
    for kind in (pa.list_(pa.float32(), 16), pa.list_(pa.float32()), pa.large_list(pa.float64())):
        column = pa.chunked_array([pa.array(lists[:1], kind), pa.array([], kind), pa.array(lists[1:], kind)])
        made = search(pa.table({"vector": column}))
        assert made["rows"].type == pa.list_(pa.int64(), 5) and made["scores"].type == pa.list_(pa.float32(), 5)
        assert np.array_equal(np.stack(made["rows"].to_pylist()), rows)
        assert np.array_equal(np.stack(made["scores"].to_pylist()), scores)
    tensor = pa.FixedShapeTensorArray.from_numpy_ndarray(ROWS[:4])
    assert search(pa.table({"vector": tensor}))["rows"].to_pylist() == rows.tolist()
    made = search(pa.table({"vector": pa.array([lists[0], None], pa.list_(pa.float32(), 16))}))
    assert made["rows"].to_pylist() == [rows[0].tolist(), [-1] * 5]
    alone = search(pa.array(lists))
    assert [hit["rows"] for hit in alone.to_pylist()] == rows.tolist()
    frame = search(pd.DataFrame({"vector": [*ROWS[:4], None]}))
    assert np.array_equal(np.stack(frame["rows"][:4]), rows) and np.isnan(frame["scores"][4]).all()
    for wrong in (pa.array(["a"]), pa.array([[1.0]]), pa.array([lists[0], [1.0]]), pa.array([[None] * 16], pa.list_(pa.float32())),
                  pa.array([["a"] * 16])):  # fmt: skip
        with pytest.raises(weighbridge.RefusedError):
            search(pa.table({"vector": wrong}))


def test_search_with_texts_and_filters(minilm: Path, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("Lorries are weighed.\nCats sleep.\nIt rains in spring.\n")
    program = [sys.executable, "-m", "weighbridge", "embed", "-m", str(minilm), "-i", "texts.txt", "-o", "rows.i8bin"]
    made = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    search = Search(tmp_path / "rows.i8bin", text="q", k=2, rows="near")
    found = search({"q": np.array(["a heavy truck", None, "pets"], object)})
    assert found["near"][:, 0].tolist() == [0, -1, 1]
    only = Search(tmp_path / "rows.i8bin", text="q", k=2, filter=["text=Cats sleep."])({"q": ["a heavy truck"]})
    assert only["rows"].tolist() == [[1, -1]] and np.isnan(only["scores"][0, 1])


def test_odd_searches() -> None:
    search = Search(ROWS)
    for batch in ({"v": ROWS}, {"vector": ROWS[0]}, {"vector": ROWS[:, :3]}, {"vector": ["a"]}, {"vector": [[1.0], [1.0, 2.0]]},
                  {"vector": ROWS, "rows": ROWS}):  # fmt: skip
        with pytest.raises(weighbridge.RefusedError):
            search(batch)
    with pytest.raises(weighbridge.RefusedError):
        Search(ROWS, k=0)
    with pytest.raises(weighbridge.NotFound):
        Search("absent.npy")
    assert "matrix of 50 rows" in repr(search)


def program(*arguments: object, hide: str = "") -> subprocess.CompletedProcess[str]:
    """The command line, in a process where a package can't be imported."""
    lines = f"import runpy, sys; sys.modules.update(dict.fromkeys({hide.split()!r})); runpy.run_module('weighbridge.batch', run_name='__main__')"
    return subprocess.run([sys.executable, "-c", lines, *map(str, arguments)], capture_output=True, text=True, timeout=120)


def test_the_program_without_an_engine(model: Path, tmp_path: Path) -> None:
    given = ["--input", "*.parquet", "--column", "text", "--output", tmp_path / "out", "--model", model]
    for engine, package in (("ray", "ray[data]"), ("daft", "daft")):
        done = program("--engine", engine, *given, hide=engine)
        assert done.returncode == 2 and f"the engine {engine} is not installed" in done.stderr, done.stderr
        assert f'pip install "{package}"' in done.stderr and "Traceback" not in done.stderr
    assert program("--engine", "spark", *given).returncode == 2
    assert program(*given).returncode == 2 and "--engine" in program(*given).stderr
    help = program("--help")
    assert help.returncode == 0 and all(name in help.stdout for name in ("--engine", "--input", "--rows", "Exit codes"))
    assert program("--engine", "ray", "--rows", "0", *given).returncode == 2
    assert not os.path.exists(tmp_path / "out")


def test_a_command_is_checked_before_its_engine_is_started(model: Path, tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    # In place of Ray: it says that it is started, and can't be.
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray/__init__.py").write_text("raise ImportError('the engine was started')")
    pq.write_table(pa.table({"text": TEXTS, "number": [1, 2, 3, 4]}), tmp_path / "texts.parquet")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/letter.txt").write_text("dear")
    right = {"input": tmp_path / "*.parquet", "column": "text", "output": tmp_path / "out", "model": model}

    def run(**changed: object) -> subprocess.CompletedProcess[str]:
        given = [word for name, value in {**right, **changed}.items() for word in (f"--{name}", str(value))]
        lines = f"import runpy, sys; sys.path.insert(0, {str(tmp_path)!r}); runpy.run_module('weighbridge.batch', run_name='__main__')"
        command = [sys.executable, "-c", lines, "--engine", "ray", *given]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    for changed, message in (
        ({"model": tmp_path / "absent"}, "absent"),
        ({"input": tmp_path / "absent/*.parquet"}, "no file is named"),
        ({"column": "body"}, "no column 'body'"),
        ({"column": "number"}, "not texts"),
        ({"vector": "text"}, "has a column 'text' already"),
        ({"output": tmp_path / "mine"}, "holds other files"),
    ):
        done = run(**changed)
        assert done.returncode in (2, 4) and message in done.stderr, done.stderr
        assert "was started" not in done.stderr, done.stderr
    done = run()
    assert done.returncode == 2 and "was started" in done.stderr, done.stderr
    # Nothing was written for an engine that does not run.
    assert not os.path.exists(tmp_path / "out") and os.listdir(tmp_path / "mine") == ["letter.txt"]


def test_nothing_of_it_is_loaded_unless_asked_for() -> None:
    program = "import sys, weighbridge; assert 'weighbridge.batch' not in sys.modules\n"
    program += "import weighbridge.batch; assert not {'pyarrow', 'pandas', 'ray', 'daft'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)
