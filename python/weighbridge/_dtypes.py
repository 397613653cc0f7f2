"""Element types of files, and what numpy calls them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Those that numpy has.
PLAIN = {
    "f64": "<f8",
    "f32": "<f4",
    "f16": "<f2",
    "c64": "<c8",
    "i64": "<i8",
    "i32": "<i4",
    "i16": "<i2",
    "i8": "|i1",
    "u64": "<u8",
    "u32": "<u4",
    "u16": "<u2",
    "u8": "|u1",
    "bool": "|b1",
    "bitset": "|u1",
}

# Those of the package ml_dtypes, and what they are seen as without it.
MORE = {
    "bf16": ("bfloat16", "<u2"),
    "f8": ("float8_e5m2", "|u1"),
    "f8e4m3": ("float8_e4m3fn", "|u1"),
    "f8e5m2fnuz": ("float8_e5m2fnuz", "|u1"),
    "f8e4m3fnuz": ("float8_e4m3fnuz", "|u1"),
    "f8e8m0": ("float8_e8m0fnu", "|u1"),
}

_NAMES = {np.dtype(kind).newbyteorder("<"): name for name, kind in reversed(PLAIN.items())}


def dtype_of(name: str) -> np.dtype[Any]:
    """The numpy type of an element type. bf16 and the types of 8 bits need the package ml_dtypes; without
    it they are seen as integers that have their bits."""
    if name in PLAIN:
        return np.dtype(PLAIN[name])
    more, bits = MORE[name]
    try:
        import ml_dtypes
    except ImportError:
        return np.dtype(bits)
    found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, more))
    return found


def name_of(dtype: np.dtype[Any]) -> str:
    """The element type of a numpy type."""
    found = _NAMES.get(dtype.newbyteorder("<"))
    if found is not None and found != "bitset":
        return found
    for name, (more, _) in MORE.items():
        if dtype.name == more:
            return name
    raise TypeError(f"no file has values of the type {dtype}")


def raw_of(array: NDArray[Any]) -> memoryview:
    """The bytes of an array, row by row and little-endian; where it has them like that they are not copied."""
    array = np.ascontiguousarray(array)
    if array.dtype.kind != "V" and array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    return array.reshape(-1).view(np.uint8).data


def bytes_of(array: NDArray[Any]) -> bytes:
    """The same as bytes of one's own."""
    return raw_of(array).tobytes()


def array_of(name: str, shape: list[int], buffer: Any) -> NDArray[Any]:
    """An array over a buffer, which it keeps; read-only."""
    dtype = dtype_of(name)
    if len(buffer) == 0:
        empty: NDArray[Any] = np.empty(shape, dtype)
        empty.flags.writeable = False
        return empty
    # ml_dtypes' types have no name in the buffer protocol.
    flat = np.frombuffer(buffer, np.uint8).view(dtype)
    return flat.reshape(shape)
