"""The specification's notation of a file."""

from __future__ import annotations

import json
import os
from typing import Any

from .. import _native
from .._reports import Summary, report_of
from .._verbs import verify


def verify_oinf(path: str | os.PathLike[str]) -> str:
    """Checks a file, and gives what is in it in the specification's notation. Raises `MalformedError` for
    a file that breaks a rule."""
    file = _native.open(os.fspath(path), "oinf")
    verdict = verify(path)
    summary = report_of(Summary, file.summary(stats=True, values=True))
    lines = [f"{finding.rule} {finding.severity}: {finding.message}" for finding in verdict.findings]
    lines += [f"{name} := {value}" for name, value in summary.sizevars.items()]
    lines.append("")
    lines += [f"{key}: {_type(value)} = {_value(value)}" for key, value in summary.metadata.items()]
    for tensor in summary.tensors:
        shape = f"[{', '.join(map(str, tensor.shape))}]" if tensor.shape else ""
        head = f"{tensor.name}: {tensor.encoding}{shape}"
        if tensor.bytes is None:
            lines += ["", f"{head} -- uninitialized"]
            continue
        lines += ["", f"{head} = {_preview(tensor.first or [], tensor.last or [], tensor.shape)}"]
        if stats := tensor.stats:
            figures = ("min", "max", "mean", "median", "std")
            said = ", ".join(f"{name}: {_number(getattr(stats, name))}" for name in figures)
            lines.append(f"- [nbytes: {tensor.bytes}, {said}]")
            bins = ", ".join(f"{_number(bin.low)}..{_number(bin.high)}: {bin.count}" for bin in stats.histogram)
            lines.append(f"- histogram: {bins}")
    return "\n".join(lines).strip() + "\n"


def _type(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, dict):
        return "bitset" if "bits" in value else f"{value['dtype']}{value['shape']}"
    return {str: "str", int: "int", float: "float", list: f"[{len(value)}]" if isinstance(value, list) else ""}.get(
        type(value), type(value).__name__
    )


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"{{ {', '.join(map(_number, value))} }}"
    return json.dumps(value)


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _preview(first: list[Any], last: list[Any], shape: list[int]) -> str:
    count = 1
    for size in shape:
        count *= size
    if count <= len(first):
        shown = [_number(value) for value in first]
    else:
        overlap = max(0, len(first) + len(last) - count)
        between = ["..."] if count > len(first) + len(last) else []
        shown = [*map(_number, first), *between, *map(_number, last[overlap:])]
    inner = ", ".join(shown)
    return inner if not shape else f"{{ {inner} }}"
