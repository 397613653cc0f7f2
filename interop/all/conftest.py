"""What the tests share: the model all-MiniLM-L6-v2, with prompts and without."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(os.environ["WEIGHBRIDGE_ROOT"])

# Nothing is fetched, and nothing is told to anybody.
os.environ.update(HF_HUB_OFFLINE="1", ANONYMIZED_TELEMETRY="False", HAYSTACK_TELEMETRY_ENABLED="False")

PROMPTS = {"query": "question: ", "document": "passage: "}


@pytest.fixture(scope="session")
def minilm() -> Path:
    """The model as `weighbridge pull minilm` fetches it, where interop/run keeps it."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "WEIGHBRIDGE_CACHE": str(ROOT / "target/interop-models"), "PATH": path}
    done = subprocess.run(
        [sys.executable, "-m", "weighbridge", "pull", "minilm", "--json"], capture_output=True, env=environment
    )
    assert done.returncode == 0, done.stderr.decode()
    return Path(json.loads(done.stdout)["model"])


@pytest.fixture(scope="session")
def prompted(minilm: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same model with prompts for questions and for documents."""
    folder = tmp_path_factory.mktemp("prompted") / "model"
    shutil.copytree(minilm, folder)
    config = folder / "config_sentence_transformers.json"
    said = json.loads(config.read_text()) if config.exists() else {}
    config.write_text(json.dumps({**said, "prompts": PROMPTS, "default_prompt_name": None}))
    return folder
