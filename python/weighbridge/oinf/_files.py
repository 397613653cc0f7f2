"""Writing and reading OINF files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from .. import _native
from .._files import Container
from .._files import open as open_file
from .._reports import Summary, report_of
from ._fields import parts_of

Path = str | os.PathLike[str]


@dataclass(frozen=True)
class OinfFile:
    """What an OINF file holds; tensors without values are not among the arrays."""

    sizevars: dict[str, int]
    metadata: dict[str, Any]
    tensors: dict[str, NDArray[Any]]
    container: Container


def write_oinf(instance: Any, output_path: Path) -> None:
    """Writes an instance of a dataclass.

    A field becomes a size variable if it is a `SizeVar` or an ``int``; a tensor if it is a `TensorSpec`, an
    `UninitializedTensor` or an array; else a value of the metadata."""
    _native.write(_built(instance), os.fspath(output_path), "oinf", [], True, False)


def dataclass_to_oinf(instance: Any) -> bytes:
    """The bytes of the file that `write_oinf` writes."""
    content, _ = _native.to_bytes(_built(instance), "", "oinf", False)
    return content


def _built(instance: Any) -> _native.File:
    parts = parts_of(instance)
    return _native.build(parts.tensors, parts.metadata, list(parts.sizevars.items()), None, None, False)


def read_oinf(path: Path) -> OinfFile:
    """Reads a file."""
    container = open_file(path, format="oinf")
    summary = report_of(Summary, container._file.summary())
    arrays = {info.name: container[info.name] for info in container.tensors if info.bytes is not None}
    return OinfFile(dict(summary.sizevars), dict(summary.metadata), arrays, container)
