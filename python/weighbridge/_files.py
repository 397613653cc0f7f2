"""Files as mappings from names to arrays."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, BinaryIO, Literal, overload

import numpy as np
from numpy.typing import NDArray

from . import _native
from ._dtypes import array_of, bytes_of, name_of
from ._reports import Conversion, report_of

Path = str | os.PathLike[str]


@dataclass(frozen=True)
class TensorInfo:
    """What a file says of a tensor.

    ``offset`` is where its bytes begin in the file, and ``bytes`` their number; both are None where it has
    no values, or they lie apart."""

    name: str
    encoding: str
    shape: tuple[int, ...]
    offset: int | None
    bytes: int | None


class Container(Mapping[str, NDArray[Any]]):
    """An open file: arrays by name.

    Arrays of plain types are looked at where they are in the mapped file, and are read-only; others are
    decoded. They stay when the container is gone. Somebody who cuts the file short while an array looks at
    it ends the process, as with any mapped file; ``array.copy()`` is safe from that.
    """

    def __init__(self, file: _native.File) -> None:
        self._file = file
        self._metadata: dict[str, Any] | None = None

    def __getitem__(self, name: str) -> NDArray[Any]:
        return array_of(*self._file.values(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._file.names())

    def __len__(self) -> int:
        return len(self._file.names())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._file.has(name)

    def __repr__(self) -> str:
        return f"<weighbridge.Container of {self.format} with {len(self)} tensors>"

    def __enter__(self) -> Container:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None

    @property
    def format(self) -> str:
        """The id of the format, such as ``embd``."""
        return self._file.format

    @property
    def metadata(self) -> dict[str, Any]:
        """Values by key, as ``weighbridge metadata --json`` prints them."""
        if self._metadata is None:
            self._metadata = json.loads(self._file.metadata())
        return dict(self._metadata or {})

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
        first, rest = (index[0], index[1:]) if isinstance(index, tuple) and index else (index, ())
        if self._shape and isinstance(first, slice) and first.step in (None, 1):
            start, stop, _ = first.indices(self._shape[0])
            part = array_of(*self._file.values(self._name, start, max(start, stop)))
            return part[(slice(None), *rest)] if rest else part
        whole: NDArray[Any] = array_of(*self._file.values(self._name))[index]
        return whole


_SAFETENSORS = {"f8": "F8_E5M2", "f8e4m3": "F8_E4M3", "bool": "BOOL"}


def open(source: Path | bytes | bytearray | memoryview | BinaryIO, *, format: str | None = None) -> Container:
    """Opens a file or a model directory of any known format.

    Args:
        source: a path, the bytes of a file, or an open file, which is read to its end
        format: id of the format, where it should not be guessed

    >>> import tempfile, os, numpy as np, weighbridge
    >>> path = os.path.join(tempfile.mkdtemp(), "some.safetensors")
    >>> report = weighbridge.save(path, {"w": np.arange(3, dtype=np.float32)})
    >>> weighbridge.open(path)["w"]
    array([0., 1., 2.], dtype=float32)
    """
    if isinstance(source, (str, os.PathLike)):
        return Container(_native.open(os.fspath(source), format))
    if isinstance(source, (bytes, bytearray, memoryview)):
        return Container(_native.open_bytes("bytes", bytes(source), format))
    name = getattr(source, "name", "file")
    return Container(_native.open_bytes(str(name), source.read(), format))


def load(path: Path, *, format: str | None = None) -> dict[str, NDArray[Any]]:
    """All tensors of a file, as arrays of one's own that can be changed.

    >>> import tempfile, os, numpy as np, weighbridge
    >>> path = os.path.join(tempfile.mkdtemp(), "some.safetensors")
    >>> report = weighbridge.save(path, {"w": np.eye(2, dtype=np.float32)})
    >>> weighbridge.load(path)["w"].tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return {name: array.copy() for name, array in open(path, format=format).items()}


def save(
    path: Path,
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
        path: where; its extension says the format
        tensors: arrays by name
        metadata: texts, numbers, booleans or arrays by key
        format: id of the format, if the extension should not say it
        words: a word for each row, or the vocabulary of a model
        records: a dictionary for each row
        overwrite: whether a file that is there is replaced, in one step
        allow_loss: go on where the format can't hold something
    """
    report = _native.save(
        os.fspath(path),
        [_tensor(name, value) for name, value in tensors.items()],
        [_entry(key, value) for key, value in (metadata or {}).items()],
        [],
        None if words is None else list(words),
        None if records is None else [json.dumps(record) for record in records],
        format,
        [],
        overwrite,
        allow_loss,
    )
    return report_of(Conversion, report)


def _tensor(name: str, value: Any) -> tuple[str, str, list[int], bytes]:
    if hasattr(value, "detach"):
        value = _from_torch(value)
    array = np.asarray(value)
    return name, name_of(array.dtype), list(array.shape), bytes_of(array)


def _from_torch(value: Any) -> NDArray[Any]:
    import torch

    value = value.detach().cpu().contiguous()
    if value.dtype == torch.bfloat16:
        import ml_dtypes

        bits: NDArray[Any] = value.view(torch.uint16).numpy()
        return bits.view(ml_dtypes.bfloat16)
    made: NDArray[Any] = value.numpy()
    return made


def _entry(key: str, value: Any) -> tuple[str, str, list[int], bytes]:
    if isinstance(value, str):
        return key, "str", [], value.encode()
    if isinstance(value, (bool, np.bool_)):
        return key, "bool", [], bytes([bool(value)])
    if isinstance(value, int) and not isinstance(value, np.generic):
        return key, "i64", [], np.int64(value).tobytes()
    if isinstance(value, float) and not isinstance(value, np.generic):
        return key, "f64", [], np.float64(value).tobytes()
    array = np.asarray(value)
    return key, name_of(array.dtype), list(array.shape), bytes_of(array)


class safe_open:
    """A file as safetensors' ``safe_open`` gives it, of any format.

    Args:
        filename: the file
        framework: ``np`` for arrays of numpy, ``pt`` for tensors of torch over the same memory
        device: where tensors of torch shall be

    >>> import tempfile, os, numpy as np, weighbridge
    >>> path = os.path.join(tempfile.mkdtemp(), "some.safetensors")
    >>> report = weighbridge.save(path, {"w": np.arange(6, dtype=np.int32).reshape(2, 3)})
    >>> with weighbridge.safe_open(path, framework="np") as file:
    ...     list(file.keys()), file.get_slice("w")[:, :2].tolist()
    (['w'], [[0, 1], [3, 4]])
    """

    def __init__(
        self,
        filename: Path,
        framework: Literal["np", "numpy", "pt", "torch", "pytorch"] = "np",
        device: str | int = "cpu",
    ) -> None:
        if framework not in ("np", "numpy", "pt", "torch", "pytorch"):
            raise ValueError(f"framework {framework!r} is not known: np or pt")
        self._container = open(filename)
        self._torch = framework in ("pt", "torch", "pytorch")
        self._device = device

    def __enter__(self) -> safe_open:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None

    def keys(self) -> list[str]:
        """The names of all tensors, sorted."""
        return sorted(self._container)

    def offset_keys(self) -> list[str]:
        """The names of all tensors, in the order of the file."""
        return list(self._container)

    def metadata(self) -> dict[str, str] | None:
        """The texts of the file."""
        texts = {key: value for key, value in self._container.metadata.items() if isinstance(value, str)}
        return texts or None

    def get_tensor(self, name: str) -> Any:
        """A tensor, whole."""
        return self._given(self._container[name])

    def get_slice(self, name: str) -> Any:
        """A tensor of which only what is asked for is read."""
        found = self._container.get_slice(name)
        return _TorchSlice(found, self._given) if self._torch else found

    def _given(self, array: NDArray[Any]) -> Any:
        return _to_torch(array, self._device) if self._torch else array


class _TorchSlice:
    def __init__(self, inner: Slice, given: Any) -> None:
        self._inner = inner
        self._given = given
        self.get_shape = inner.get_shape
        self.get_dtype = inner.get_dtype

    def __getitem__(self, index: Any) -> Any:
        return self._given(self._inner[index])


def _to_torch(array: NDArray[Any], device: str | int) -> Any:
    import warnings

    import torch

    name = array.dtype.name
    bits = {"bfloat16": np.uint16}.get(name, np.uint8 if name.startswith("float8") else None)
    with warnings.catch_warnings():
        # The memory is that of the file: nobody should write to the tensor.
        warnings.filterwarnings("ignore", message=".*not writable.*")
        if bits is None:
            made = torch.from_numpy(array)
        else:
            made = torch.from_numpy(array.view(bits)).view(getattr(torch, name))
    return made if device == "cpu" else made.to(device)
