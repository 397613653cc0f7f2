"""How the package behaves in somebody's process: it logs and prints nothing, shows progress where asked for, leaves
signals alone, and works in forks and threads."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import weighbridge


def run(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """A process of its own that runs a few lines."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program, *map(str, arguments)], capture_output=True, text=True, timeout=120
    )


def test_importing_needs_numpy_alone_and_does_nothing(samples: Path) -> None:
    program = """
import signal, sys, threading
import numpy
before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGBUS, signal.SIGPIPE)}
def caught():
    with open("/proc/self/status") as status:
        return [line for line in status if line.startswith("SigCgt")]
handled = caught()
modules = set(sys.modules)
import weighbridge
heavy = {"logging", "dataclasses", "inspect", "asyncio", "torch", "tqdm", "ml_dtypes", "argparse", "tempfile"}
assert not heavy & (set(sys.modules) - modules), heavy & (set(sys.modules) - modules)
file = weighbridge.open(sys.argv[1])
sum(array.nbytes for array in file.values())
weighbridge.verify(sys.argv[1])
assert before == {number: signal.getsignal(number) for number in before}
assert handled == caught()
assert threading.active_count() == 1
"""
    done = run(program, samples / "tiny.weights")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_nothing_is_printed(samples: Path, tmp_path: Path) -> None:
    program = """
import sys, pathlib, numpy as np, weighbridge
samples, out = map(pathlib.Path, sys.argv[1:])
weighbridge.convert(samples / "tiny.weights", out / "a.safetensors")
weighbridge.quantize(samples / "hf-model", out / "a.mcf", "k4")
weighbridge.Encoder(samples / "hf-model").encode(["a", "b"])
weighbridge.KeyedVectors.load(samples / "words.fifu").most_similar("truck")
try:
    weighbridge.open(out / "absent")
except weighbridge.Error:
    pass
"""
    done = run(program, samples, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


class Bar:
    """In place of tqdm's."""

    made: list[Bar] = []

    def __init__(self, total: int | None, desc: str) -> None:
        self.total, self.desc, self.n, self.open = total, desc, 0, True
        Bar.made.append(self)

    def update(self, more: int) -> None:
        self.n += more

    def close(self) -> None:
        self.open = False


@pytest.fixture()
def bars(monkeypatch: pytest.MonkeyPatch) -> list[Bar]:
    import types

    Bar.made = []
    module = types.ModuleType("tqdm.auto")
    module.tqdm = Bar  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)
    return Bar.made


def test_progress_is_shown_where_it_is_asked_for(samples: Path, bars: list[Bar], caplog: pytest.LogCaptureFixture) -> None:
    encoder = weighbridge.Encoder(samples / "hf-model")
    encoder.encode(["a", "b"])
    encoder.encode(["a", "b"], show_progress_bar=False)
    assert not bars
    encoder.encode(["a", "b"], show_progress_bar=True)
    assert [(bar.desc, bar.total, bar.n, bar.open) for bar in bars] == [("embedding", 2, 2, False)]
    with caplog.at_level(logging.INFO, "weighbridge"):
        encoder.encode(["a", "b"])
        encoder.encode(["a", "b"], show_progress_bar=False)
    assert len(bars) == 2


def test_the_bar_is_tqdm_s(samples: Path) -> None:
    pytest.importorskip("tqdm")
    program = "import sys, weighbridge; weighbridge.Encoder(sys.argv[1]).encode(['a', 'b'], show_progress_bar=True)"
    done = run(program, samples / "hf-model")
    assert (done.returncode, done.stdout) == (0, "") and "embedding: 100%" in done.stderr and "2/2" in done.stderr, done.stderr


def test_without_tqdm_logging_says_so(
    samples: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with caplog.at_level(logging.INFO, "weighbridge"):
        weighbridge.Encoder(samples / "hf-model").encode("a", show_progress_bar=True)
    assert [record.name for record in caplog.records] == ["weighbridge"] and "tqdm" in caplog.text


def test_a_bar_that_raises_ends_the_work_and_is_closed(samples: Path, bars: list[Bar], monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(self: Bar, more: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Bar, "update", stop)
    with pytest.raises(KeyboardInterrupt):
        weighbridge.Encoder(samples / "hf-model").encode(["a"] * 100, show_progress_bar=True)
    assert bars and not any(bar.open for bar in bars)


def test_files_are_used_after_a_fork(tmp_path: Path) -> None:
    rows = np.random.default_rng(1).normal(size=(3000, 64)).astype(np.float32)
    weighbridge.save(tmp_path / "a.npy", {"rows": rows})
    program = """
import os, sys, numpy as np, weighbridge
path = sys.argv[1]
index = weighbridge.Index(path)
expected = index.search(np.ones((300, 64), np.float32), 5)[1]
file = weighbridge.open(path)
for depth in range(3):
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        sys.exit(os.waitstatus_to_exitcode(status))
    # What the parent opened, and what is opened here.
    for one in (index, weighbridge.Index(path)):
        assert (one.search(np.ones((300, 64), np.float32), 5)[1] == expected).all()
    assert weighbridge.verify(path).ok and len(list(file.values())[0]) == 3000
    weighbridge.convert(path, f"{path}.{depth}.f32bin", allow_loss=True)
"""
    done = run(program, tmp_path / "a.npy")
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob("*.f32bin"))) == 3


def test_other_threads_run_meanwhile() -> None:
    """Work is done without the interpreter's lock: a thread of Python counts while a search goes on."""
    rows = np.random.default_rng(1).normal(size=(200_000, 64)).astype(np.float32)
    index = weighbridge.Index(rows)
    counted, stop = 0, threading.Event()

    def count() -> None:
        nonlocal counted
        while not stop.wait(0.001):
            counted += 1

    counter = threading.Thread(target=count)
    counter.start()
    before = counted
    index.search(rows[:512], 10)
    meanwhile = counted - before
    stop.set()
    counter.join()
    # Were the lock held for all of it, the thread could count once before and once behind.
    assert meanwhile > 2


def test_threads_open_save_and_search_at_once(samples: Path, tmp_path: Path) -> None:
    failed: list[BaseException] = []
    words = weighbridge.KeyedVectors.load(samples / "words.fifu")
    nearest = words.most_similar("truck")

    def work(number: int) -> None:
        try:
            for i in range(10):
                array = np.full(1000, number * 100 + i, np.int32)
                weighbridge.save(tmp_path / f"{number}.safetensors", {"w": array})
                assert np.array_equal(weighbridge.open(tmp_path / f"{number}.safetensors")["w"], array)
                assert words.most_similar("truck") == nearest
                with pytest.raises(weighbridge.NotFound):
                    weighbridge.open(tmp_path / "absent")
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failed


def test_ctrl_c_stops_writing_and_leaves_nothing(tmp_path: Path) -> None:
    """The signal comes as soon as something is being written, however fast that is."""
    program = """
import os, signal, sys, threading, numpy as np, weighbridge
folder = sys.argv[1]
rows = np.random.default_rng(1).normal(size=(1000, 300)).astype(np.float32)
rows = np.broadcast_to(rows, (200, 1000, 300)).reshape(-1, 300)
words = [f"w{i}" for i in range(len(rows))]
seen = []
def stop():
    while not seen:
        seen.extend(os.listdir(folder))
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=stop, daemon=True).start()
try:
    weighbridge.save(folder + "/a.txt", {"embeddings": rows}, words=words)
except KeyboardInterrupt:
    print("stopped", os.listdir(folder))
assert seen and "a.txt" not in seen, seen
"""
    done = run(program, tmp_path)
    assert done.returncode == 0 and done.stdout == "stopped []\n", (done.stdout, done.stderr)


def test_ctrl_c_ends_the_wait_for_what_only_reads(tmp_path: Path) -> None:
    """A file of a tebibyte with nothing in it, which takes far longer to read than is waited here."""
    program = """
import os, signal, sys, threading, numpy as np, weighbridge
path = sys.argv[1] + "/a.npy"
with open(path, "wb") as file:
    np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (1 << 38,)})
    file.truncate(file.tell() + (1 << 40))
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    weighbridge.inspect(path, stats=True)
    print("finished")
except KeyboardInterrupt:
    print("stopped")
"""
    done = run(program, tmp_path)
    assert (done.returncode, done.stdout) == (0, "stopped\n"), done.stderr
