"""Embed and Search in Ray Data and Daft, also while workers are killed: no row is lost or doubled, and every vector is
that of a plain encoder. Lance takes what they give."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import ROOT

import weighbridge
from weighbridge.batch import Embed, Search, daft_function

# Workers that engines start find the classes of this file by its name.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]))
os.environ.update(RAY_USAGE_STATS_ENABLED="0", DAFT_ANALYTICS_ENABLED="0", DAFT_PROGRESS_BAR="0")

FILES, ROWS = 4, 300


def text_of(row: int) -> str | None:
    """The text of a row; some have none."""
    words = ["lorry", "hay", "rain", "the bridge", "a train", "snow", "seven tonnes"]
    return None if row % 97 == 5 else f"{words[row % 7]} and {words[row % 5]}, number {row}"


TEXTS = [text_of(row) for row in range(FILES * ROWS)]


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model: that of `weighbridge quickstart`."""
    folder = tmp_path_factory.mktemp("samples")
    subprocess.run([sys.executable, "-m", "weighbridge", "quickstart", "--offline"], cwd=folder, check=True, capture_output=True)
    return folder / "quickstart/hf-model"


@pytest.fixture(scope="session")
def expected(model: Path) -> np.ndarray:
    return weighbridge.Encoder(model).encode([text or "" for text in TEXTS])


@pytest.fixture(scope="session")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Parquet files with a number and a text in each row."""
    folder = tmp_path_factory.mktemp("texts")
    for number in range(FILES):
        rows = range(number * ROWS, (number + 1) * ROWS)
        pq.write_table(pa.table({"id": list(rows), "text": [TEXTS[row] for row in rows]}), folder / f"{number}.parquet")
    return folder


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    import ray
    import ray.data

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield ray
    ray.shutdown()


def check(folder: Path, expected: np.ndarray) -> None:
    """Every row is there once, with its own vector, bit for bit."""
    files = sorted(folder.rglob("*.parquet"))
    tables = [pq.read_table(file) for file in files if not any(part.startswith("_") for part in file.parts)]
    rows = {}
    for table in tables:
        for row, vector in zip(table["id"].to_pylist(), table["vector"].to_pylist(), strict=True):
            assert row not in rows, f"row {row} is there twice"
            rows[row] = vector
    assert sorted(rows) == list(range(len(TEXTS)))
    for row, vector in rows.items():
        if TEXTS[row] is None:
            assert np.isnan(vector).all()
        else:
            assert np.array_equal(np.array(vector, np.float32), expected[row]), row


class Mortal(Embed):
    """Its process is killed in the middle of the work, once: as a machine that fails would do it."""

    def __init__(self, mark: str, after: int, **options: Any) -> None:
        self.mark, self.left = mark, after
        super().__init__(**options)

    def __reduce__(self) -> tuple[Any, ...]:
        # Also what was sent to a worker opens its model there.
        settings = {name: value for name, value in self._settings.items()}
        return _mortal, (self.mark, self.left, settings)

    def __call__(self, batch: Any) -> Any:
        self.left -= 1
        if self.left < 0:
            try:
                os.close(os.open(self.mark, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                pass
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(batch)


def _mortal(mark: str, after: int, settings: dict[str, Any]) -> Mortal:
    return Mortal(mark, after, **settings)


def test_ray_with_a_worker_that_is_killed(ray: Any, model: Path, texts: Path, expected: np.ndarray, tmp_path: Path) -> None:
    made = ray.data.read_parquet(str(texts)).repartition(target_num_rows_per_block=50)
    options = {"model": str(model), "mark": str(tmp_path / "killed"), "after": 3}
    made = made.map_batches(
        Mortal,
        fn_constructor_kwargs=options,
        batch_size=None,
        batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(size=2),
        num_cpus=0.5,
    )
    made.write_parquet(str(tmp_path / "out"))
    assert (tmp_path / "killed").exists()
    check(tmp_path / "out", expected)


@pytest.mark.parametrize("kind", ["numpy", "pandas", "pyarrow"])
def test_every_kind_of_ray_s_batches(ray: Any, model: Path, expected: np.ndarray, kind: str) -> None:
    rows = [row for row in range(100) if TEXTS[row] is not None]
    made = ray.data.from_items([{"id": row, "text": TEXTS[row]} for row in rows]).map_batches(
        Embed,
        fn_constructor_kwargs={"model": str(model)},
        batch_format=kind,
        batch_size=16,
        compute=ray.data.ActorPoolStrategy(size=1),
        num_cpus=0.5,
    )
    # What one worker adds, another one searches with.
    made = made.map_batches(
        Search,
        fn_constructor_kwargs={"index": expected[:100], "k": 1},
        batch_format=kind,
        compute=ray.data.ActorPoolStrategy(size=1),
        num_cpus=0.5,
    )
    found = sorted((row["id"], *np.ravel(row["rows"]), row["vector"]) for row in made.take_all())
    assert [row for row, _, _ in found] == rows
    for row, near, vector in found:
        assert np.array_equal(np.asarray(vector, np.float32), expected[row])
        assert np.array_equal(expected[near], expected[row])


@pytest.fixture(scope="session")
def daft() -> Any:
    """Daft without Ray, also where another test started that."""
    import daft

    daft.set_runner_native()
    return daft


def daft_rows(texts: Path, worker: Any, folder: Path, **options: Any) -> None:
    import daft

    function = daft_function(worker, workers=2, batch_size=50, **options)
    frame = daft.read_parquet(f"{texts}/*.parquet")
    frame.with_column("vector", function(frame["text"])).write_parquet(str(folder))


def test_daft(daft: Any, model: Path, texts: Path, expected: np.ndarray, tmp_path: Path) -> None:
    daft_rows(texts, Embed(model), tmp_path / "out")
    check(tmp_path / "out", expected)
    daft_rows(texts, Embed(model, threads=2), tmp_path / "here", use_process=False)
    check(tmp_path / "here", expected)


def test_a_class_of_daft_s_own(daft: Any, model: Path, expected: np.ndarray) -> None:
    @daft.cls(max_concurrency=2, use_process=True)
    class Embedding(Embed):
        @daft.method.batch(return_dtype=daft.DataType.embedding(daft.DataType.float32(), expected.shape[1]))
        def __call__(self, texts: Any) -> Any:
            return Embed.__call__(self, texts)

    frame = daft.from_pydict({"text": TEXTS[:5]})
    made = frame.with_column("vector", Embedding(str(model))(frame["text"])).to_pydict()
    assert np.array_equal(np.stack(made["vector"]), expected[:5])
    search = daft_function(Search(expected, k=2), workers=1)
    found = daft.from_pydict(made).with_column("found", search(daft.col("vector"))).to_pydict()["found"]
    assert [hit["rows"][0] for hit in found] == list(range(5))


# A runner can't be changed in a process that has one.
ON_RAY = """
import sys, daft, test_batch
from pathlib import Path
daft.set_runner_ray()
model, texts, folder = map(Path, sys.argv[1:])
worker = test_batch.Mortal(str(folder / "killed"), 3, model=str(model))
test_batch.daft_rows(texts, worker, folder / "out", cpus=0.5)
"""


def test_daft_on_ray_with_a_worker_that_is_killed(model: Path, texts: Path, expected: np.ndarray, tmp_path: Path) -> None:
    given = [sys.executable, "-c", ON_RAY, *map(str, (model, texts, tmp_path))]
    done = subprocess.run(given, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "killed").exists()
    check(tmp_path / "out", expected)


def test_daft_alone_says_that_a_worker_died(daft: Any, model: Path, texts: Path, tmp_path: Path) -> None:
    """It does not start workers again; the program's next run does the part anew."""
    with pytest.raises(Exception, match="UDF process|terminated|EOF"):
        daft_rows(texts, Mortal(str(tmp_path / "killed"), 3, model=str(model)), tmp_path / "out")


def program(*arguments: object) -> subprocess.CompletedProcess[str]:
    given = [sys.executable, "-m", "weighbridge.batch", *map(str, arguments)]
    return subprocess.run(given, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("engine", ["ray", "daft"])
def test_the_program(engine: str, model: Path, texts: Path, expected: np.ndarray, tmp_path: Path) -> None:
    given = ["--engine", engine, "--input", texts / "*.parquet", "--column", "text", "--output", tmp_path / "out"]
    given += ["--model", model, "--rows", 64, "--part", 3]
    done = program(*given)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"wrote {tmp_path / 'out'}: {FILES * ROWS} rows, {expected.shape[1]} values each\n"
    assert "part 2 of 2: 1200 rows" in done.stderr
    check(tmp_path / "out", expected)
    # As a run that was stopped left it: the finished part stays as it is, the other is done anew.
    first, second = sorted((tmp_path / "out").glob("part-*"))
    (tmp_path / "out/_done.json").unlink()
    (second / "_done.json").unlink()
    (second / "left-over.parquet").write_bytes(b"half a file")
    before = {file: file.stat().st_mtime_ns for file in first.iterdir()}
    done = program(*given, "--quiet")
    assert done.returncode == 0 and "part 2" not in done.stderr and "Traceback" not in done.stderr, done.stderr
    assert before == {file: file.stat().st_mtime_ns for file in first.iterdir()}
    check(tmp_path / "out", expected)
    # Other settings don't go into the same folder.
    done = program(*given, "--compute", "q8")
    assert done.returncode == 2 and "other settings: compute" in done.stderr and "--force" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_program_says_what_is_wrong(model: Path, texts: Path, tmp_path: Path) -> None:
    def said(code: int, message: str, **changed: object) -> None:
        given = {"engine": "daft", "input": texts, "column": "text", "output": tmp_path / "out", "model": model, **changed}
        done = program(*(part for name, value in given.items() for part in (f"--{name}", value)))
        assert done.returncode == code and re.search(message, done.stderr), (done.returncode, done.stderr)
        assert "Traceback" not in done.stderr

    said(4, "no file is named", input=tmp_path / "*.parquet")
    said(4, "absent", model=tmp_path / "absent")
    said(2, "no column 'body': id, text", column="body")
    said(2, "holds int64, not texts", column="id")
    said(2, "column 'id' already", vector="id")
    (tmp_path / "bad.parquet").write_bytes(b"no")
    said(3, "can't be read as Parquet", input=tmp_path / "bad.parquet")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    said(2, "holds other files", output=tmp_path / "full")


def test_lance(model: Path, texts: Path, expected: np.ndarray, tmp_path: Path) -> None:
    import lance
    import pyarrow.dataset

    embed = Embed(model, missing="null")
    source = pa.dataset.dataset(texts)
    batches = map(embed, source.to_batches(batch_size=64))
    made = lance.write_dataset(batches, str(tmp_path / "rows.lance"), schema=embed.schema(source.schema))
    assert made.count_rows() == len(TEXTS)
    table = made.to_table()
    for row, vector in zip(table["id"].to_pylist(), table["vector"].to_pylist(), strict=True):
        assert vector is None if TEXTS[row] is None else np.array_equal(np.array(vector, np.float32), expected[row])
    # Its own search finds what ours finds.
    near = made.to_table(columns=["id", "_distance"], nearest={"column": "vector", "q": expected[7], "k": 3, "metric": "cosine"})
    there = [row for row, text in enumerate(TEXTS) if text is not None]
    _, ours = weighbridge.Index(expected[there]).search(expected[7], 3)
    assert near["id"].to_pylist() == [there[row] for row in ours]


def test_the_snippets_of_the_page(model: Path, tmp_path: Path) -> None:
    page = (ROOT / "docs/scale.md").read_text()
    snippets = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert len(snippets) >= 4
    (tmp_path / "quickstart").symlink_to(model.parent)
    (tmp_path / "page.py").write_text("\n".join(snippets))
    done = subprocess.run([sys.executable, "page.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
