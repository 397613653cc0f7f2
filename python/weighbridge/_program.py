"""The program that comes with the package."""

from __future__ import annotations

import sys

from . import _native


def main() -> int:
    """Runs the command line of this process, and gives the code that it should end with."""
    return _native.main(sys.argv)
