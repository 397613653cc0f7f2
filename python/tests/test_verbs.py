"""The verbs, against the program's own JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import weighbridge
from weighbridge import _reports


def program(*arguments: object) -> object:
    made = subprocess.run(
        [sys.executable, "-m", "weighbridge", *map(str, arguments), "--json"], capture_output=True, text=True
    )
    return json.loads(made.stdout)


def check_members(report: object) -> None:
    """Every member that the program prints is an attribute."""
    if isinstance(report, list):
        for one in report:
            check_members(one)
    elif isinstance(report, _reports.Report):
        for key, value in report.json.items():
            name = "from_" if key == "from" else key
            assert hasattr(report, name), (type(report), key)
            check_members(getattr(report, name))
            if not isinstance(value, (dict, list)):
                assert getattr(report, name) == value


def test_inspect_and_verify(samples: Path) -> None:
    visited = 0
    for path in sorted(samples.iterdir()):
        if path.suffix in (".md", ".txt", ".json"):
            continue
        try:
            summary = weighbridge.inspect(path, stats=True, values=True, vocabulary=True, regions=True)
        except weighbridge.Error:
            continue
        assert summary.json == program("inspect", path, "--stats", "--values", "--vocab", "--bytes"), path
        check_members(summary)
        verdict = weighbridge.verify(path)
        assert verdict.json == program("verify", path), path
        assert bool(verdict) == verdict.ok
        check_members(verdict)
        visited += 1
    assert visited >= 8


def test_findings_are_told(tmp_path: Path, samples: Path) -> None:
    broken = tmp_path / "broken.weights"
    broken.write_bytes((samples / "tiny.weights").read_bytes()[:-100])
    verdict = weighbridge.verify(broken)
    assert not verdict and verdict.findings[0].severity == "error" and verdict.findings[0].file == str(broken)
    check_members(verdict)


def test_convert_and_diff(tmp_path: Path, samples: Path) -> None:
    target = tmp_path / "a.safetensors"
    report = weighbridge.convert(samples / "tiny.weights", target)
    check_members(report)
    assert report.from_ == "embd" and report.to == "safetensors" and Path(report.files[0].file) == target
    difference = weighbridge.diff(samples / "tiny.weights", target)
    assert difference.same and not difference
    check_members(difference)
    with pytest.raises(weighbridge.RefusedError):
        weighbridge.convert(samples / "tiny.weights", target)
    half = weighbridge.convert(
        samples / "tiny.weights", target, dtype="f16", select=["*.bias"], overwrite=True, allow_loss=True
    )
    check_members(half)
    difference = weighbridge.diff(samples / "tiny.weights", target)
    assert difference and difference.only_first
    check_members(difference)
    dry = weighbridge.convert(samples / "tiny.weights", tmp_path / "b.mcf", dry_run=True)
    assert not dry.written and not (tmp_path / "b.mcf").exists()


def test_quantize_and_recall(tmp_path: Path, samples: Path) -> None:
    report = weighbridge.quantize(samples / "hf-model", tmp_path / "a.mcf", "k4")
    check_members(report)
    assert report.method == "k4" and report.tensors and report.vectors is not None
    rows = np.random.default_rng(1).normal(size=(200, 32)).astype(np.float32)
    weighbridge.save(tmp_path / "a.npy", {"matrix": rows})
    weighbridge.save(tmp_path / "b.npy", {"matrix": np.round(rows, 1)})
    found = weighbridge.recall(tmp_path / "a.npy", tmp_path / "b.npy", k=5)
    check_members(found)
    assert found.json == program("recall", tmp_path / "a.npy", tmp_path / "b.npy", "-k", 5)
    assert 0.8 < found.recall <= 1


def test_progress_can_stop_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from weighbridge import _native

    weighbridge.save(tmp_path / "a.safetensors", {"w": np.zeros(1 << 20, np.float32)})

    def stop(stage: str, done: int, total: int | None) -> None:
        raise KeyboardInterrupt

    arguments = [str(tmp_path / "a.safetensors"), str(tmp_path / "b.weights"), None, [], [], [], [], None, []]
    with pytest.raises(KeyboardInterrupt):
        _native.convert(*arguments, False, True, False, stop)
    assert not list(tmp_path.glob("*b.weights*"))


def test_the_program_is_there() -> None:
    made = subprocess.run([Path(sys.executable).parent / "weighbridge", "--version"], capture_output=True, text=True)
    assert made.returncode == 0 and weighbridge.__version__ in made.stdout
    wrong = subprocess.run([sys.executable, "-m", "weighbridge", "inspect", "absent"], capture_output=True, text=True)
    assert wrong.returncode == 4
