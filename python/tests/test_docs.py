"""The snippets of docs/python.md run as they stand, and the table of docs/scale.md is what its simulation prints."""

from __future__ import annotations

import importlib
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest


def test_snippets_of_the_page_run(tmp_path: Path) -> None:
    page = (Path(os.environ["WEIGHBRIDGE_ROOT"]) / "docs/python.md").read_text()
    snippets = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert len(snippets) >= 9
    made = subprocess.run(
        [sys.executable, "-m", "weighbridge", "quickstart", "--offline"], cwd=tmp_path, capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr
    (tmp_path / "page.py").write_text("\n".join(snippets))
    ran = subprocess.run([sys.executable, "-W", "error", "page.py"], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_the_simulation_of_many_workers() -> None:
    root = Path(os.environ["WEIGHBRIDGE_ROOT"])
    done = subprocess.run([sys.executable, "-W", "error", root / "bench/scale.py"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("| workers |") and done.stdout in (root / "docs/scale.md").read_text()


def test_what_the_simulation_rests_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(os.environ["WEIGHBRIDGE_ROOT"]) / "bench")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    scale = importlib.import_module("scale")
    # Where nothing fails and nobody is slow, everybody takes what the arithmetic says.
    calm = scale.World(texts=1_000_000, straggler_every=0, spread=0, failure=1e30, start=0)
    ideal = 1_000_000 / calm.rate / 10
    for seconds in (scale.static(calm, 10, 1, True), scale.static(calm, 10, 1, False), scale.dynamic(calm, 10, 1, 1000)):
        assert seconds == pytest.approx(ideal)
    assert scale.dynamic(calm, 10, 1, 300_000) == pytest.approx(300_000 / calm.rate)
    # A share that takes T, with failures every F, takes F (exp(T / F) - 1) on average, and T when all is kept.
    some = scale.World(texts=1000, rate=1, straggler_every=0, spread=0, failure=1000, start=0, away=0)
    took = [[scale.static(some, 1, seed, keep) for seed in range(4000)] for keep in (False, True)]
    assert sum(took[0]) / 4000 == pytest.approx(1000 * (math.e - 1), rel=0.05)
    assert sum(took[1]) / 4000 == pytest.approx(1000)
