"""What the verbs return: the members of docs/json.md as attributes."""

from __future__ import annotations

import functools
import json
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")


class Report:
    """The base of all reports. ``json`` is the object that it was made of, as the program prints it.

    Not dataclasses: making thirty of them takes longer than importing all the rest.
    """

    json: dict[str, Any]

    def __init__(self, json: dict[str, Any], **members: Any) -> None:
        self.__dict__.update(members, json=json)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"a report can't be changed: {name}")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, Report) and self.json == other.json

    def __repr__(self) -> str:
        members = ", ".join(f"{name}={value!r}" for name, value in vars(self).items() if name != "json")
        return f"{type(self).__name__}({members})"


class Bin(Report):
    """Values from ``low`` up to ``high``."""

    low: float
    high: float
    count: int


class Stats(Report):
    """Statistics of a tensor's values; the figures are None where no value is finite."""

    count: int
    min: float | None
    max: float | None
    mean: float | None
    median: float | None
    std: float | None
    nan: int
    inf: int
    zero: int
    histogram: list[Bin]


class TensorSummary(Report):
    """A tensor."""

    name: str
    encoding: str
    shape: list[int]
    offset: int | None
    bytes: int | None
    quantization: dict[str, Any] | None = None
    stats: Stats | None = None
    first: list[Any] | None = None
    last: list[Any] | None = None


class VocabularySummary(Report):
    """The tokens or words of a file."""

    size: int
    special: dict[str, int]
    tokens: list[str] | None = None


class RowsSummary(Report):
    """A matrix of vectors."""

    count: int
    dim: int
    records: bool


class AttachmentSummary(Report):
    """A file within the file."""

    name: str
    bytes: int


class Region(Report):
    """Bytes of the file, and what they are."""

    start: int
    end: int
    what: str


class Summary(Report):
    """What is inside a file."""

    format: str
    layout: str
    flags: list[str]
    size: int
    metadata: dict[str, Any]
    sizevars: dict[str, int]
    tensors: list[TensorSummary]
    vocabulary: VocabularySummary | None
    attachments: list[AttachmentSummary]
    rows: RowsSummary | None
    model: dict[str, Any] | None
    subwords: dict[str, Any] | None = None
    regions: list[Region] | None = None


class Finding(Report):
    """A broken rule of a format."""

    rule: str
    severity: str
    file: str
    start: int
    end: int
    field: str
    message: str
    expected: str
    found: str
    hint: str


class Verdict(Report):
    """What verifying found; it is true where there are no errors."""

    file: str
    format: str | None
    ok: bool
    findings: list[Finding]
    unchecked: list[str]
    more: int = 0

    def __bool__(self) -> bool:
        return self.ok


class Changed(Report):
    """A tensor that is stored in another way."""

    tensor: str
    from_: str
    to: str


class Rounding(Report):
    """How values were rounded."""

    from_: str
    to: str
    changed: int
    of: int
    largest: float


class Loss(Report):
    """What is lost."""

    what: str
    why: str
    kind: str
    subject: str
    rounding: Rounding | None = None


class ConversionReport(Report):
    """What becomes of the parts of a file."""

    kept: int
    changed: list[Changed]
    losses: list[Loss]
    ignored: list[str]
    warnings: list[str]


class ConvertedFile(Report):
    """A file that was written."""

    file: str
    bytes: int


class Conversion(Report):
    """What was written, or would be."""

    from_: str
    to: str
    written: bool
    files: list[ConvertedFile]
    needs: str | None
    report: ConversionReport


class VectorChange(Report):
    """What became of a model's vectors."""

    texts: int
    mean_cosine: float
    worst_cosine: float


class QuantizedTensor(Report):
    """A quantized tensor, and what that cost."""

    name: str
    method: str
    shape: list[int]
    bytes_before: int
    bytes_after: int
    bits_per_weight: float
    relative_rmse: float | None
    max_error: float | None
    cosine: float | None
    snr_db: float | None


class KeptTensor(Report):
    """A tensor that is not quantized."""

    name: str
    why: str


class Quantized(Report):
    """A file with fewer bits a weight, and what that cost."""

    method: str
    encoder: str
    written: bool
    files: list[str]
    needs: str | None
    report: ConversionReport
    bytes_before: int
    bytes_after: int
    bits_per_weight: float
    relative_rmse: float | None
    max_error: float | None
    cosine: float | None
    snr_db: float | None
    tensors: list[QuantizedTensor]
    kept: list[KeptTensor]
    adjusted: Sequence[str] = ()
    recall_at_10: float | None = None
    vectors: VectorChange | None = None
    calibrated: VectorChange | None = None


class ValueDifference(Report):
    """How values differ."""

    changed: int
    max_abs: float | None
    relative_rmse: float | None
    cosine: float | None


class TensorDifference(Report):
    """How a tensor differs between two files."""

    name: str
    same: bool
    encodings: list[str]
    shapes: list[list[int]]
    values: ValueDifference | None


class Compared(Report):
    """How much was compared."""

    tensors: int
    metadata: int
    sizes: int
    files: int
    vocabulary: bool
    subwords: bool
    records: bool


class ContentDifference(Report):
    """What differs beside the tensors."""

    what: str
    first: str | None
    second: str | None


class Difference(Report):
    """How two files differ; it is true where they do."""

    same: bool
    compared: Compared
    only_first: list[str]
    only_second: list[str]
    tensors: list[TensorDifference]
    contents: list[ContentDifference]

    def __bool__(self) -> bool:
        return not self.same


class Recall(Report):
    """How many neighbours stay the same between two files."""

    k: int
    queries: int
    recall: float
    rank_correlation: float
    max_score_error: float


class Score(Report):
    """How many questions were answered rightly."""

    correct: int
    asked: int
    skipped: int
    accuracy: float | None


class Section(Report):
    """The questions of one kind."""

    section: str
    correct: int
    asked: int
    skipped: int
    accuracy: float | None


class Evaluation(Report):
    """How many analogies came out right."""

    sections: list[Section]
    total: Score


def report_of(made: type[T], text: str) -> T:
    """A report out of its JSON. Members that are not known here are left to ``json``."""
    kind: Any = made
    found: T = _reader(kind)(json.loads(text))
    return found


@functools.cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    """What turns a value of JSON into one of this type."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if isinstance(kind, type) and issubclass(kind, Report):
        return _object_reader(kind)
    if origin is list:
        element = _reader(arguments[0])
        return lambda value: [element(item) for item in value]
    if origin is types.UnionType:
        (inner,) = (_reader(one) for one in arguments if one is not type(None))
        return lambda value: None if value is None else inner(value)
    return lambda value: value


def _object_reader(kind: type[Report]) -> Callable[[Any], Any]:
    hints = typing.get_type_hints(kind)
    hints.pop("json")
    # `from` is a word of the language.
    readers = {name.rstrip("_"): (name, _reader(hint)) for name, hint in hints.items()}

    def read(value: dict[str, Any]) -> Any:
        known = ((readers[key], item) for key, item in value.items() if key in readers)
        return kind(value, **{name: reader(item) for (name, reader), item in known})

    return read
