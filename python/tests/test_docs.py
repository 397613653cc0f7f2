"""The snippets of docs/python.md run as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path


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
