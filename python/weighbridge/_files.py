"""Files as mappings from names to arrays."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, NamedTuple, Self, overload

import numpy as np
from numpy.typing import NDArray

from . import _native
from ._dtypes import array_of, bytes_of, name_of, raw_of
from ._errors import RefusedError, as_argument
from ._reports import Conversion, report_of

Path = str | os.PathLike[str]


class TensorInfo(NamedTuple):
    """What a file says of a tensor.

    ``offset`` is where its bytes begin in the file, and ``bytes`` their number; both are None where it has
    no values, or they lie apart."""

    name: str
    encoding: str
    shape: tuple[int, ...]
    offset: int | None
    bytes: int | None


class Closing:
    """An open file that ``with`` closes. What was taken out of it stays."""

    def __init__(self, file: _native.File) -> None:
        self._held: _native.File | None = file

    @property
    def _file(self) -> _native.File:
        if self._held is None:
            raise RefusedError("the file is closed")
        return self._held

    def close(self) -> None:
        """Gives the file back, as soon as no array looks at it. Nothing can be asked of it then."""
        self._held = None

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._held is None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Container(Closing, Mapping[str, NDArray[Any]]):
    """An open file: arrays by name.

    Arrays of plain types are looked at where they are in the mapped file, and are read-only; others are
    decoded. They stay when the container is gone. Somebody who cuts the file short while an array looks at
    it ends the process, as with any mapped file; ``array.copy()`` is safe from that.
    """

    def __getitem__(self, name: str) -> NDArray[Any]:
        return array_of(*self._file.values(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._file.names())

    def __len__(self) -> int:
        return len(self._file.names())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._file.has(name)

    def __repr__(self) -> str:
        if self.closed:
            return "<weighbridge.Container, closed>"
        return f"<weighbridge.Container of {self.format} with {len(self)} tensors>"

    @property
    def format(self) -> str:
        """The id of the format, such as ``embd``."""
        return self._file.format

    @property
    def metadata(self) -> dict[str, Any]:
        """Values by key, as ``weighbridge metadata --json`` prints them."""
        found: dict[str, Any] = json.loads(self._file.metadata())
        return found

    @property
    def vocabulary(self) -> list[str] | None:
        """All tokens or words, by number."""
        return self._file.vocabulary()

    @property
    def records(self) -> Records | None:
        """What is said of each row."""
        count = self._file.records()
        return None if count is None else Records(self._file, count)

    @property
    def tensors(self) -> list[TensorInfo]:
        """What the file says of its tensors, in its order."""
        return [self.tensor(name) for name in self]

    def tensor(self, name: str) -> TensorInfo:
        """What the file says of a tensor."""
        encoding, _, shape, offset, size = self._file.describe(name)
        return TensorInfo(name, encoding, tuple(shape), offset, size)

    def get_slice(self, name: str) -> Slice:
        """A tensor of which only what is asked for is decoded."""
        return Slice(self._file, name)

    def raw(self, name: str) -> memoryview:
        """The bytes of a tensor as they are stored."""
        buffer = self._file.raw(name)
        return memoryview(b"" if buffer is None else buffer)


class Records(Sequence[dict[str, Any]]):
    """The records of rows, each made when it is asked for."""

    def __init__(self, file: _native.File, count: int) -> None:
        self._file = file
        self._count = count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, row: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, row: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, row: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if isinstance(row, slice):
            return [self[i] for i in range(*row.indices(self._count))]
        if row < 0:
            row += self._count
        if not 0 <= row < self._count:
            raise IndexError(f"there are {self._count} records")
        record: dict[str, Any] = json.loads(self._file.record(row))
        return record


class Slice:
    """A tensor whose rows are decoded when they are asked for: ``slice[10:20]``."""

    def __init__(self, file: _native.File, name: str) -> None:
        self._file = file
        self._name = name
        self._encoding, _, shape, *_ = file.describe(name)
        self._shape = list(shape)

    def get_shape(self) -> list[int]:
        """The shape of the whole tensor."""
        return list(self._shape)

    def get_dtype(self) -> str:
        """The element type as safetensors names it, such as ``F32``."""
        return _SAFETENSORS.get(self._encoding, self._encoding.upper())

    def __getitem__(self, index: Any) -> NDArray[Any]:
        return self.part(index)[1]

    def part(self, index: Any) -> tuple[str, NDArray[Any]]:
        """What is asked for, and its element type."""
        first, rest = (index[0], index[1:]) if isinstance(index, tuple) and index else (index, ())
        if self._shape and isinstance(first, slice) and first.step in (None, 1):
            start, stop, _ = first.indices(self._shape[0])
            name, shape, buffer = self._file.values(self._name, start, max(start, stop))
            part = array_of(name, shape, buffer)
            return name, part[(slice(None), *rest)] if rest else part
        name, shape, buffer = self._file.values(self._name)
        whole: NDArray[Any] = array_of(name, shape, buffer)[_indices(index)]
        return name, whole


def _indices(index: Any) -> Any:
    """An empty list has no type that numpy would take for numbers of rows."""
    return np.array(index, np.intp) if isinstance(index, list) and not index else index


_SAFETENSORS = {"f8": "F8_E5M2", "f8e4m3": "F8_E4M3", "bool": "BOOL"}


def open(source: Path | bytes | bytearray | memoryview | IO[bytes], *, format: str | None = None) -> Container:
    """Opens a file or a model directory of any known format.

    Args:
        source: a path, the bytes of a file, or an open file, which is read to its end
        format: id of the format, where it should not be guessed

    >>> import tempfile, os, numpy as np, weighbridge
    >>> path = os.path.join(tempfile.mkdtemp(), "some.safetensors")
    >>> report = weighbridge.save(path, {"w": np.arange(3, dtype=np.float32)})
    >>> with weighbridge.open(path) as file:
    ...     file["w"]
    array([0., 1., 2.], dtype=float32)
    """
    return Container(opened(source, format))


def opened(source: Any, format: str | None) -> _native.File:
    """The native half of an open file."""
    if isinstance(source, (str, os.PathLike)):
        return _native.open(os.fspath(source), format)
    if isinstance(source, (bytes, bytearray, memoryview)):
        return _native.open_bytes("bytes", bytes(source), format)
    if not hasattr(source, "read"):
        raise TypeError(f"a path, bytes or an open file is needed, not {type(source).__name__}")
    content = source.read()
    if isinstance(content, str):
        raise TypeError("the file must be open in binary mode")
    return _native.open_bytes(str(getattr(source, "name", "file")), content, format)


def load(source: Path | bytes | bytearray | memoryview | IO[bytes], *, format: str | None = None) -> dict[str, NDArray[Any]]:
    """All tensors of a file, as arrays of one's own that can be changed.

    >>> import tempfile, os, numpy as np, weighbridge
    >>> path = os.path.join(tempfile.mkdtemp(), "some.safetensors")
    >>> report = weighbridge.save(path, {"w": np.eye(2, dtype=np.float32)})
    >>> weighbridge.load(path)["w"].tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return {name: array.copy() for name, array in open(source, format=format).items()}


def save(
    path: Path | IO[bytes],
    tensors: Mapping[str, Any],
    metadata: Mapping[str, Any] | None = None,
    format: str | None = None,
    words: Iterable[str] | None = None,
    records: Iterable[Mapping[str, Any]] | None = None,
    *,
    overwrite: bool = True,
    allow_loss: bool = False,
) -> Conversion:
    """Writes arrays to a file.

    Args:
        path: where; its extension says the format. Or an open file, to which the bytes are written
        tensors: arrays by name, of numpy or torch
        metadata: texts, numbers, booleans or arrays by key
        format: id of the format, if the extension should not say it
        words: a word for each row, or the vocabulary of a model
        records: a dictionary for each row
        overwrite: whether a file that is there is replaced, in one step
        allow_loss: go on where the format can't hold something
    """
    file = _native.build(
        [_tensor(name, value) for name, value in tensors.items()],
        [_entry(key, value) for key, value in (metadata or {}).items()],
        [],
        None if words is None else list(words),
        None if records is None else [json.dumps(record) for record in records],
        False,
    )
    try:
        if isinstance(path, (str, os.PathLike)):
            return report_of(Conversion, _native.write(file, os.fspath(path), format, [], overwrite, allow_loss))
        content, report = _native.to_bytes(file, str(getattr(path, "name", "")), format, allow_loss)
    except RefusedError as error:
        raise as_argument(error) from None
    path.write(content)
    return report_of(Conversion, report)


def _tensor(name: str, value: Any) -> tuple[str, str, list[int], memoryview]:
    if hasattr(value, "detach"):
        from ._torch import from_torch

        return name, *from_torch(value)
    array = np.asarray(value)
    return name, _named(array, name, value), list(array.shape), raw_of(array)


def _named(array: NDArray[Any], name: str, value: Any) -> str:
    try:
        return name_of(array.dtype)
    except TypeError as error:
        raise TypeError(f"{name!r} is of a type that no file has: {type(value).__name__} ({array.dtype})") from error


def _entry(key: str, value: Any) -> tuple[str, str, list[int], bytes]:
    if isinstance(value, str):
        return key, "str", [], value.encode()
    if isinstance(value, (bool, np.bool_)):
        return key, "bool", [], bytes([bool(value)])
    if isinstance(value, float) and not isinstance(value, np.generic):
        return key, "f64", [], np.float64(value).tobytes()
    array = np.asarray(value)
    return key, _named(array, key, value), list(array.shape), bytes_of(array)
