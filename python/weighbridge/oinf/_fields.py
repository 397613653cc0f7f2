"""What the fields of a dataclass can be, and what becomes of them."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Union

import numpy as np
from numpy.typing import NDArray

from .. import _native
from .._dtypes import bytes_of, dtype_of, name_of
from .._errors import RefusedError

# Element types by the names and numbers that can be asked for.
_NUMBERS = {
    1: "i8", 2: "i16", 3: "i32", 4: "i64", 5: "u8", 6: "u16", 7: "u32", 8: "u64", 9: "f16", 10: "f32",
    11: "f64", 12: "bool", 16: "bf16", 17: "f8", 18: "i4", 19: "i2", 20: "i1", 21: "u4", 22: "u2",
    23: "u1", 24: "t2", 25: "t1",
}  # fmt: skip
_ALIASES = {"f8e5m2": "f8", "float8e5m2": "f8"}
# Those that numpy has no type for: where values come from, and their range.
_PACKED = {
    "i4": (-8, 7), "i2": (-2, 1), "i1": (-1, 0), "u4": (0, 15), "u2": (0, 3), "u1": (0, 1),
    "t2": (-1, 1), "t1": (-1, 1),
}  # fmt: skip

# Name, type, shape and bytes of something.
Stored = tuple[str, str, list[int], bytes]
Declared = tuple[str, str, list[int], bytes | None]


class OinfError(RefusedError):
    """A dataclass can't become an OINF file."""


class Bitset:
    """Flags, eight to a byte."""

    def __init__(self, bits: Iterable[bool]) -> None:
        self.bits = [bool(bit) for bit in bits]

    @property
    def bit_count(self) -> int:
        """How many flags there are."""
        return len(self.bits)

    def to_packed(self) -> bytes:
        """The bytes that they stand in, the first flag the lowest bit."""
        return np.packbits(np.array(self.bits, bool), bitorder="little").tobytes()


@dataclasses.dataclass
class SizeVar:
    """A size that the model knows by name."""

    value: Any


@dataclasses.dataclass
class ScalarValue:
    """A value of the metadata, of a type of one's own choice."""

    value: Any
    dtype: str | int | None = None


@dataclasses.dataclass
class TensorSpec:
    """A tensor, of a type and with a name of one's own choice."""

    data: Any
    dtype: str | int | None = None
    name: str | None = None


class UninitializedTensor:
    """A tensor without values."""

    def __init__(self, dtype: str | int, shape: Sequence[int], name: str | None = None) -> None:
        self.dtype = dtype
        self.shape = tuple(int(size) for size in shape)
        self.name = name


@dataclasses.dataclass
class Parts:
    """What a dataclass becomes."""

    sizevars: dict[str, int]
    metadata: list[Stored]
    tensors: list[Declared]


def parts_of(instance: Any) -> Parts:
    """The size variables, the metadata and the tensors of a dataclass, each by name."""
    if not dataclasses.is_dataclass(instance) or isinstance(instance, type):
        raise OinfError("an instance of a dataclass is needed")
    hints = typing.get_type_hints(type(instance), include_extras=True)
    sizes: dict[str, Any] = dict(_group(instance, "sizevars"))
    values: dict[str, tuple[Any, Mapping[str, Any]]] = {
        key: (value, {}) for key, value in _group(instance, "metadata").items()
    }
    arrays: dict[str, tuple[Any, Mapping[str, Any]]] = {
        key: (value, {}) for key, value in _group(instance, "tensors").items()
    }
    for field in dataclasses.fields(instance):
        if field.name in ("sizevars", "metadata", "tensors"):
            continue
        value = getattr(instance, field.name)
        said = {**_annotated(hints.get(field.name)), **field.metadata}
        kind = _kind(hints.get(field.name))
        if isinstance(value, SizeVar) or said.get("sizevar") or kind in (int, SizeVar):
            sizes[field.name] = value
        elif not isinstance(value, ScalarValue) and _is_tensor(value, said):
            arrays[field.name] = value, said
        else:
            values[field.name] = value, said
    return Parts(
        {key: _size(key, sizes[key]) for key in sorted(sizes)},
        [_entry(key, *values[key]) for key in sorted(values)],
        [_tensor(key, *arrays[key]) for key in sorted(arrays)],
    )


def _group(instance: Any, name: str) -> dict[str, Any]:
    """Members that a dataclass has in a dictionary of this name."""
    found = getattr(instance, name, None)
    return found if isinstance(found, dict) else {}


def _annotated(annotation: Any) -> dict[str, Any]:
    """What ``Annotated`` says of a field."""
    said: dict[str, Any] = {}
    if typing.get_origin(annotation) is Annotated:
        for extra in typing.get_args(annotation)[1:]:
            said.update({extra: True} if isinstance(extra, str) else extra if isinstance(extra, dict) else {})
    return said


def _kind(annotation: Any) -> Any:
    """The type of a field, without what is said of it or that it may be None."""
    if typing.get_origin(annotation) is Annotated:
        annotation = typing.get_args(annotation)[0]
    if typing.get_origin(annotation) is Union:
        some = [kind for kind in typing.get_args(annotation) if kind is not type(None)]
        return some[0] if len(some) == 1 else annotation
    return annotation


def _is_tensor(value: Any, said: Mapping[str, Any]) -> bool:
    if said.get("tensor") or isinstance(value, (TensorSpec, UninitializedTensor, np.ndarray)):
        return True
    return isinstance(value, (list, tuple)) and "dtype" in said


def _type(asked: Any) -> str:
    """The element type that a name or a number asks for."""
    name = _NUMBERS.get(asked) if isinstance(asked, int) else str(asked).strip().lower()
    name = _ALIASES.get(name or "", name)
    if name is None or name not in _NUMBERS.values():
        raise OinfError(f"there is no element type {asked!r}", field="dtype")
    return name


def _size(key: str, value: Any) -> int:
    value = value.value if isinstance(value, SizeVar) else value
    if value is None or isinstance(value, bool):
        raise OinfError(f"the size variable {key!r} can't be {value!r}", field=key)
    size = int(value)
    if not 0 <= size < 1 << 64:
        raise OinfError(f"the size variable {key!r} is not a number from 0 to 2^64 - 1: {size}", field=key)
    return size


def _entry(key: str, value: Any, said: Mapping[str, Any]) -> Stored:
    if isinstance(value, ScalarValue):
        said = {**said, "dtype": value.dtype} if value.dtype is not None else said
        value = value.value
    asked = _type(said["dtype"]) if "dtype" in said else None
    if isinstance(value, (bool, np.bool_)):
        return key, "bool", [], bytes([bool(value)])
    if isinstance(value, str):
        return key, "str", [], value.encode()
    if isinstance(value, Bitset):
        return key, "bitset", [value.bit_count], value.to_packed()
    if isinstance(value, (int, np.integer)):
        name = asked or _narrowest(int(value), int(value))
        return key, name, [], encoded(key, np.array(int(value)), name)
    if isinstance(value, (float, np.floating)):
        name = asked or "f32"
        return key, name, [], encoded(key, np.array(float(value)), name)
    if isinstance(value, (list, tuple, np.ndarray)):
        array = _array(key, value)
        name = asked or (name_of(array.dtype) if isinstance(value, np.ndarray) else _narrow(array))
        return key, name, list(array.shape), encoded(key, array, name)
    raise OinfError(f"the field {key!r} is of a type that no metadata has: {type(value).__name__}", field=key)


def _narrow(array: NDArray[Any]) -> str:
    """The type that a list of numbers is stored in."""
    if array.dtype.kind == "f":
        return "f32"
    if array.dtype.kind in "iu":
        low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
        return _narrowest(low, high, signed=array.dtype.kind == "i")
    return name_of(array.dtype)


def _narrowest(low: int, high: int, signed: bool | None = None) -> str:
    signed = low < 0 if signed is None else signed
    for bits in (8, 16, 32, 64):
        least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        if least <= low and high <= most:
            return f"{'i' if signed else 'u'}{bits}"
    raise OinfError(f"{high if high > 0 else low} is beyond 64 bits")


def _tensor(key: str, value: Any, said: Mapping[str, Any]) -> Declared:
    asked = said.get("dtype")
    if isinstance(value, UninitializedTensor):
        return value.name or key, _type(value.dtype), list(value.shape), None
    if isinstance(value, TensorSpec):
        key, asked, value = value.name or key, value.dtype, value.data
    elif isinstance(value, np.ndarray):
        asked = None
    if value is None:
        if asked is None or said.get("shape") is None:
            raise OinfError(f"the tensor {key!r} is None, and nothing says its type and shape", field=key)
        return key, _type(asked), [int(size) for size in said["shape"]], None
    array = _array(key, value)
    name = name_of(array.dtype) if asked is None else _type(asked)
    return key, name, list(array.shape), encoded(key, array, name)


def _array(key: str, value: Any) -> NDArray[Any]:
    try:
        array = np.array(value)
    except ValueError as error:
        raise OinfError(f"the lists of {key!r} have different lengths", field=key) from error
    if array.dtype == np.object_:
        raise OinfError(f"the lists of {key!r} have different lengths", field=key)
    return array


def encoded(key: str, array: NDArray[Any], name: str) -> bytes:
    """The bytes of an array in an element type."""
    if name in _PACKED:
        low, high = _PACKED[name]
        outside = array.size and (int(array.min()) < low or int(array.max()) > high)
        if outside or (name == "t1" and not np.isin(array, (-1, 1)).all()):
            raise OinfError(f"{key!r} has values that are none of {name}", field=key)
        return _native.encode("i64", name, array.size, bytes_of(array.astype(np.int64)))
    if name in ("bf16", "f8") and array.dtype.name not in ("bfloat16", "float8_e5m2"):
        return _native.encode("f32", name, array.size, bytes_of(array.astype(np.float32)))
    return bytes_of(array.astype(dtype_of(name), copy=False))
