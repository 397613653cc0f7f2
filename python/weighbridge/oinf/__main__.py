"""``python -m weighbridge.oinf --input module:Class --json data.json --output model.oinf``"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import os
import sys
from typing import Any

from .._errors import Error
from . import OinfError, verify_oinf, write_oinf


def main(arguments: list[str] | None = None) -> int:
    """The command line; its code for the end of the process."""
    parser = argparse.ArgumentParser(
        prog="python -m weighbridge.oinf",
        description="OINF files from dataclasses.",
        epilog="verify FILE checks a file and prints it in the specification's notation.",
    )
    parser.add_argument("--input", required=True, metavar="MODULE:CLASS", help="a dataclass, or an instance of one")
    parser.add_argument("--json", metavar="FILE", help="the fields of the dataclass, as JSON")
    parser.add_argument("--output", required=True, metavar="FILE", help="the file to write")
    given = sys.argv[1:] if arguments is None else arguments
    try:
        if given[:1] == ["verify"] and len(given) > 1:
            for path in given[1:]:
                sys.stdout.write(verify_oinf(path))
            return 0
        args = parser.parse_args(given)
        write_oinf(_instance(args.input, args.json), args.output)
    except Error as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _instance(target: str, data: str | None) -> Any:
    """An instance of the dataclass that a text like ``module:Class`` names."""
    module, colon, name = target.partition(":")
    if not colon:
        raise OinfError(f"{target!r} does not have the form module:Class", field="input")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise OinfError(f"{target!r} can't be imported: {error}", field="input") from error
    if not dataclasses.is_dataclass(found):
        raise OinfError(f"{name} is not a dataclass", field="input")
    if not isinstance(found, type):
        return found
    fields = {}
    if data is not None:
        with open(data, encoding="utf-8") as file:
            fields = json.load(file)
    try:
        return found(**fields)
    except TypeError as error:
        raise OinfError(f"{name} can't be made: {error}", field="json") from error


if __name__ == "__main__":
    sys.exit(main())
