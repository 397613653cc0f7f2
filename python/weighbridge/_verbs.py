"""The verbs that tell something of files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from . import _native
from ._progress import bar
from ._reports import Conversion, Difference, Quantized, Recall, Summary, Verdict, report_of

Path = str | os.PathLike[str]


def inspect(
    path: Path,
    *,
    tensors: str | None = None,
    stats: bool = False,
    values: bool = False,
    vocabulary: bool = False,
    regions: bool = False,
    format: str | None = None,
) -> Summary:
    """What is inside a file.

    Args:
        path: the file or model directory
        tensors: a pattern such as ``*.bias``: only tensors whose names fit
        stats: with statistics of all values
        values: with the first and last values of each tensor
        vocabulary: with all tokens
        regions: with what every byte of the file is
        format: id of the format, where it should not be guessed
    """
    file = _native.open(os.fspath(path), format)
    found = file.summary(
        tensors=tensors, stats=stats, values=values, vocabulary=vocabulary, regions=regions
    )
    return report_of(Summary, found)


def verify(path: Path, *, quick: bool = False) -> Verdict:
    """Holds a file against every rule of its format; the structure only if it shall be ``quick``.

    >>> import tempfile, os, numpy as np, weighbridge
    >>> path = os.path.join(tempfile.mkdtemp(), "some.safetensors")
    >>> report = weighbridge.save(path, {"w": np.zeros(3, np.float32)})
    >>> weighbridge.verify(path).ok
    True
    """
    return report_of(Verdict, _native.verify(os.fspath(path), quick))


def diff(first: Path, second: Path, *, tolerance: float = 0.0, tensors_only: bool = False) -> Difference:
    """How two files differ, part by part, whatever their formats are."""
    found = _native.diff(os.fspath(first), os.fspath(second), tolerance, tensors_only)
    return report_of(Difference, found)


def convert(
    source: Path,
    target: Path,
    *,
    to: str | None = None,
    select: Iterable[str] = (),
    exclude: Iterable[str] = (),
    rename: Mapping[str, str] | None = None,
    metadata: Mapping[str, str] | None = None,
    dtype: str | None = None,
    options: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    allow_loss: bool = False,
    dry_run: bool = False,
    show_progress_bar: bool | None = None,
) -> Conversion:
    """Writes a file in another format. Raises `LossError` if something would be lost.

    Args:
        source: the file or model directory
        target: where to write; its extension says the format
        to: id of the format, if the extension should not say it
        select, exclude: patterns of tensor names
        rename: new names of tensors, keys and size variables
        metadata: texts to set
        dtype: the type to store real numbers in, such as ``f16``
        options: options of the format, as ``weighbridge convert --help`` lists them
        overwrite: replace a file that is there
        allow_loss: go on where something is lost
        dry_run: tell only what would happen
        show_progress_bar: with tqdm; None: only where logging shows information
    """
    with bar(show_progress_bar) as tell:
        found = _native.convert(
            os.fspath(source),
            os.fspath(target),
            to,
            list(select),
            list(exclude),
            list((rename or {}).items()),
            list((metadata or {}).items()),
            dtype,
            [(name, str(value)) for name, value in (options or {}).items()],
            overwrite,
            allow_loss,
            dry_run,
            tell,
        )
    return report_of(Conversion, found)


def quantize(
    source: Path,
    target: Path,
    method: str = "q8",
    *,
    select: Iterable[str] = (),
    exclude: Iterable[str] = (),
    calibrate: bool | None = None,
    texts: Iterable[str] | None = None,
    overwrite: bool = False,
    allow_loss: bool = False,
    show_progress_bar: bool | None = None,
) -> Quantized:
    """Writes a file with fewer bits a weight, and tells what that cost.

    Args:
        source: the file or model directory
        target: where to write
        method: ``q8``, ``k6``, ``k4`` and others, as docs/quantize.md lists them
        select, exclude: patterns of tensor names
        calibrate: False rounds without an eye to what weights are multiplied with
        texts: what to calibrate with, in place of the texts that come with the package
        overwrite: replace a file that is there
        allow_loss: go on where something else is lost
        show_progress_bar: with tqdm; None: only where logging shows information
    """
    with bar(show_progress_bar) as tell:
        found = _native.quantize(
            os.fspath(source),
            os.fspath(target),
            method,
            list(select),
            list(exclude),
            calibrate,
            None if texts is None else list(texts),
            overwrite,
            allow_loss,
            tell,
        )
    return report_of(Quantized, found)


def recall(
    first: Path,
    second: Path,
    *,
    k: int = 10,
    metric: str = "cosine",
    sample: int = 1000,
    seed: int = 1,
    show_progress_bar: bool | None = None,
) -> Recall:
    """How many neighbours stay the same between two files of the same rows."""
    with bar(show_progress_bar) as tell:
        found = _native.recall(
            os.fspath(first), os.fspath(second), k, metric, sample, seed, tell
        )
    return report_of(Recall, found)
