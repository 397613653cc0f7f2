"""Containers, against numpy and safetensors."""

from __future__ import annotations

import gc
import io
import json
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import safetensors
import safetensors.numpy

import weighbridge

DTYPES = ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?", "c8"]


def arrays() -> dict[str, np.ndarray]:
    made = {kind: (np.arange(24).reshape(2, 3, 4) % 5).astype(kind) for kind in DTYPES}
    made["bf16"] = np.linspace(-2, 2, 10, dtype=np.float32).astype(ml_dtypes.bfloat16)
    made["f8e4m3"] = np.linspace(-2, 2, 10, dtype=np.float32).astype(ml_dtypes.float8_e4m3fn)
    made["scalar"] = np.array(3.5, np.float32)
    made["empty"] = np.zeros((0, 4), np.float32)
    return made


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def test_what_safetensors_wrote_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    safetensors.numpy.save_file(arrays(), path, metadata={"by": "safetensors"})
    file = weighbridge.open(path)
    assert file.format == "safetensors" and file.metadata == {"by": "safetensors"}
    assert set(file.keys()) == set(arrays())
    for name, array in arrays().items():
        assert same(file[name], array), name
        assert not file[name].flags.writeable


def test_safetensors_reads_what_is_saved(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    report = weighbridge.save(path, arrays(), metadata={"by": "us"})
    assert report.to == "safetensors" and report.written and not report.report.losses
    with safetensors.safe_open(path, "np") as file:
        assert file.metadata()["by"] == "us"
        for name, array in arrays().items():
            # Theirs has no such type for numpy.
            if name != "f8e4m3":
                assert same(file.get_tensor(name), array), name


def test_arrays_outlive_the_container(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    safetensors.numpy.save_file({"w": np.arange(1000, dtype=np.float32)}, path)
    array = weighbridge.open(path)["w"]
    path.unlink()
    gc.collect()
    assert array.sum() == 499500
    with pytest.raises(ValueError):
        array[0] = 1


def test_nothing_is_copied(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    safetensors.numpy.save_file({"w": np.zeros(1 << 20, np.float32)}, path)
    file = weighbridge.open(path)
    places = {file["w"].__array_interface__["data"][0] for _ in range(3)}
    assert len(places) == 1


def test_bytes_and_open_files_are_opened(tmp_path: Path) -> None:
    data = safetensors.numpy.save({"w": np.ones(3, np.float32)})
    for source in (data, bytearray(data), memoryview(data), io.BytesIO(data)):
        assert weighbridge.open(source)["w"].tolist() == [1, 1, 1]


def test_slices_are_those_of_numpy(samples: Path) -> None:
    indices = [np.s_[:], np.s_[1:3], np.s_[:, 2], np.s_[1:2, ::2], np.s_[::2], np.s_[-1], np.s_[..., 0], np.s_[3:1]]
    for name in ["tiny.safetensors", "tiny.mcf", "tiny.weights", "tiny.oinf"]:
        file = weighbridge.open(samples / name)
        for info in file.tensors:
            if len(info.shape) != 2 or info.bytes is None:
                continue
            whole = file[info.name]
            for index in indices:
                assert same(file.get_slice(info.name)[index], whole[index]), (name, info, index)


def test_tensors_raw_vocabulary_and_records(samples: Path) -> None:
    file = weighbridge.open(samples / "tiny.weights")
    info = file.tensor(next(iter(file)))
    content = (samples / "tiny.weights").read_bytes()
    assert info.offset is not None and info.bytes is not None
    assert file.raw(info.name).tobytes() == content[info.offset : info.offset + info.bytes]
    assert file.vocabulary is not None and "[CLS]" in file.vocabulary
    rows = weighbridge.open(samples / "cards.i8bin") if (samples / "cards.i8bin").exists() else None
    if rows is not None:
        assert rows.records is not None and len(rows.records) == len(next(iter(rows.values())))
        assert rows.records[0] == json.loads(json.dumps(rows.records[-len(rows.records)]))


def test_safe_open_is_that_of_safetensors(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    safetensors.numpy.save_file(arrays(), path, metadata={"k": "v"})
    with safetensors.safe_open(path, "np") as theirs, weighbridge.safe_open(path, "np") as ours:
        assert list(theirs.keys()) == list(ours.keys()) and theirs.metadata() == ours.metadata()
        for name in set(theirs.keys()) - {"f8e4m3"}:
            assert same(theirs.get_tensor(name), ours.get_tensor(name)), name
            a, b = theirs.get_slice(name), ours.get_slice(name)
            assert list(a.get_shape()) == b.get_shape() and a.get_dtype() == b.get_dtype(), name
        assert same(theirs.get_slice("f4")[1:, :2], ours.get_slice("f4")[1:, :2])


def test_words_and_records_are_saved(tmp_path: Path) -> None:
    rows = np.eye(3, dtype=np.float32)
    weighbridge.save(tmp_path / "a.fifu", {"matrix": rows}, words=["a", "b", "c"])
    assert weighbridge.open(tmp_path / "a.fifu").vocabulary == ["a", "b", "c"]
    weighbridge.save(tmp_path / "a.i8bin", {"matrix": rows}, records=[{"n": i} for i in range(3)], allow_loss=True)
    records = weighbridge.open(tmp_path / "a.i8bin").records
    assert records is not None and [record["n"] for record in records] == [0, 1, 2]
    assert records[-1] == {"n": 2} and records[1:] == [{"n": 1}, {"n": 2}]


def test_load_gives_arrays_of_ones_own(tmp_path: Path) -> None:
    weighbridge.save(tmp_path / "a.safetensors", {"w": np.zeros(2, np.float32)})
    array = weighbridge.load(tmp_path / "a.safetensors")["w"]
    array[0] = 1
    assert weighbridge.load(tmp_path / "a.safetensors")["w"].tolist() == [0, 0]


def test_errors_have_classes_and_facts(tmp_path: Path, samples: Path) -> None:
    with pytest.raises(weighbridge.NotFound) as absent:
        weighbridge.open(tmp_path / "absent")
    assert isinstance(absent.value, FileNotFoundError) and absent.value.kind == "not-found"
    (tmp_path / "text").write_text("hello")
    with pytest.raises(weighbridge.UnrecognisedError):
        weighbridge.open(tmp_path / "text")
    broken = tmp_path / "broken.weights"
    broken.write_bytes((samples / "tiny.weights").read_bytes()[:-100])
    with pytest.raises(weighbridge.MalformedError) as cut:
        weighbridge.open(broken)
    error = cut.value
    assert error.file == str(broken) and error.start is not None and error.rule and isinstance(error, weighbridge.Error)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error) and again.start == error.start
    with pytest.raises(weighbridge.LossError) as loss:
        weighbridge.convert(samples / "words.fifu", tmp_path / "a.npy")
    assert loss.value.losses
    assert not (tmp_path / "a.npy").exists()
    with pytest.raises(KeyError):
        weighbridge.open(samples / "tiny.weights")["absent"]
    with pytest.raises(weighbridge.RefusedError):
        weighbridge.quantize(samples / "tiny.weights", tmp_path / "a.mcf", "no-such-method")


def test_refusals_name_the_arguments_of_save(tmp_path: Path) -> None:
    one, two = np.eye(2, dtype=np.float32), {"a": np.zeros(2, np.float32), "b": np.zeros(2, np.float32)}
    (tmp_path / "there.npy").touch()
    for call, field, hint in (
        (lambda: weighbridge.save(tmp_path / "a.unknown", {"w": one}), "format", "format= takes one of: "),
        (lambda: weighbridge.save(io.BytesIO(), {"w": one}), "format", "format= takes one of: "),
        (lambda: weighbridge.save(tmp_path / "a.npy", {"w": one}, format="nope"), "format", "format= takes one of: "),
        (lambda: weighbridge.save(tmp_path / "a.npy", two), "tensors", "save one at a time"),
        (lambda: weighbridge.save(tmp_path / "a.fifu", {"w": one}), "words", "words= gives a word"),
        (lambda: weighbridge.save(tmp_path / "there.npy", {"w": one}, overwrite=False), "overwrite", "overwrite= replaces"),
    ):
        with pytest.raises(weighbridge.RefusedError) as raised:
            call()
        assert raised.value.field == field and hint in str(raised.value), str(raised.value)
        assert "option" not in str(raised.value)


def test_many_threads_read_one_file(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    safetensors.numpy.save_file({f"w{i}": np.full(1000, i, np.int32) for i in range(50)}, path)
    file, failed = weighbridge.open(path), []

    def read() -> None:
        for name, array in file.items():
            if (array != int(name[1:])).any():
                failed.append(name)

    threads = [threading.Thread(target=read) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failed


def test_arrays_of_every_kind_are_saved(tmp_path: Path) -> None:
    grid = np.arange(24, dtype=np.float32).reshape(4, 6)
    odd = {
        "transposed": grid.T,
        "strided": grid[::2, ::-1],
        "fortran": np.asfortranarray(grid),
        "big-endian": grid.astype(">f4"),
        "big-endian integers": np.arange(5, dtype=">i8"),
        "scalar": np.float32(2.5),
        "number": 3,
        "list": [[1.0, 2.0], [3.0, 4.0]],
        "flag": np.array(True),
        "flags": np.array([True, False]),
        "read-only": np.broadcast_to(np.float32(1), (3, 4)),
        "none": np.zeros((2, 0, 3), np.int8),
        "large": np.arange(3_000_000, dtype=np.int32),
    }
    weighbridge.save(tmp_path / "a.safetensors", odd)
    found = safetensors.numpy.load_file(tmp_path / "a.safetensors")
    assert found.keys() == odd.keys()
    for name, value in odd.items():
        array = np.asarray(value)
        assert same(found[name], np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"))).reshape(array.shape)), name
    values = {"list": [1, 2], "whole": 3, "real": 2.5, "yes": True, "large": 2**63, "text": "t", "array": np.eye(2)}
    weighbridge.save(tmp_path / "c.oinf", {"w": np.ones(1)}, metadata=values)
    found = weighbridge.open(tmp_path / "c.oinf").metadata
    assert {key: found[key] for key in ("list", "whole", "real", "yes", "large", "text")} == {
        key: value for key, value in values.items() if key != "array"
    }
    for wrong in (None, {"a": 1}, 2**64):
        with pytest.raises(TypeError, match="'k'"):
            weighbridge.save(tmp_path / "b.safetensors", {"w": np.ones(1)}, metadata={"k": wrong})
    for wrong in (np.array(["text"]), np.array([object()]), np.zeros(2, np.complex128), np.zeros(2, "M8[s]")):
        with pytest.raises(TypeError):
            weighbridge.save(tmp_path / "b.safetensors", {"w": wrong})
    assert not (tmp_path / "b.safetensors").exists()


def test_open_files_are_written_to(tmp_path: Path) -> None:
    tensors = {"w": np.arange(3, dtype=np.float32)}
    target = io.BytesIO()
    report = weighbridge.save(target, tensors, {"by": "me"}, format="safetensors")
    weighbridge.save(tmp_path / "a.safetensors", tensors, {"by": "me"})
    assert target.getvalue() == (tmp_path / "a.safetensors").read_bytes() and report.written
    # The name of a file says the format, as a path does.
    with open(tmp_path / "b.npy", "wb") as file:
        weighbridge.save(file, tensors)
    assert np.load(tmp_path / "b.npy").tolist() == [0, 1, 2]
    assert weighbridge.load(target.getvalue())["w"].tolist() == [0, 1, 2]
    with pytest.raises(weighbridge.Error):
        weighbridge.save(io.BytesIO(), tensors)
    with pytest.raises(TypeError):
        weighbridge.open(3)
    with open(tmp_path / "c.txt", "w+") as text, pytest.raises(TypeError):
        weighbridge.open(text)


def test_what_is_closed_says_so(tmp_path: Path) -> None:
    weighbridge.save(tmp_path / "a.safetensors", {"w": np.arange(3, dtype=np.float32)})
    with weighbridge.open(tmp_path / "a.safetensors") as file:
        array, part = file["w"], file.get_slice("w")
        assert not file.closed
    assert file.closed and "closed" in repr(file)
    for ask in (lambda: file["w"], lambda: list(file), lambda: file.metadata, lambda: file.tensors, lambda: "w" in file):
        with pytest.raises(weighbridge.RefusedError, match="closed"):
            ask()
    assert array.tolist() == [0, 1, 2] and part[1:].tolist() == [1, 2]
    with weighbridge.safe_open(tmp_path / "a.safetensors") as opened:
        opened.keys()
    for ask in (opened.keys, opened.metadata, lambda: opened.get_tensor("w"), lambda: opened.get_slice("w")):
        with pytest.raises(ValueError, match="closed"):
            ask()
    file.close()


def test_bf16_and_f8_without_ml_dtypes(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    weighbridge.save(path, {name: arrays()[name] for name in ("bf16", "f8e4m3")})
    program = (
        "import sys; sys.modules['ml_dtypes'] = None\n"
        "import weighbridge\n"
        "file = weighbridge.open(sys.argv[1])\n"
        "assert file['bf16'].dtype == 'uint16' and file['f8e4m3'].dtype == 'uint8', file['bf16'].dtype\n"
        "sys.stdout.buffer.write(file['bf16'].tobytes() + file['f8e4m3'].tobytes())\n"
    )
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == arrays()["bf16"].tobytes() + arrays()["f8e4m3"].tobytes()
