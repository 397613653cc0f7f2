"""Files of the `openinfer-oinf` package, and values of each of its types."""

from dataclasses import dataclass

import numpy as np
from dataclass_to_oinf import Bitset, ScalarValue, TensorSpec, UninitializedTensor, write_oinf
from oinf_types import DTYPE_ALIAS

from common import bf16_to_f32, e5m2_to_f32


@dataclass
class Model:
    """The package writes dataclasses; these three fields take names that are no identifiers."""

    sizevars: dict
    metadata: dict
    tensors: dict


def write(path, tensors=None, metadata=None, sizevars=None):
    write_oinf(Model(sizevars or {}, metadata or {}, tensors or {}), str(path))
    return path


def _floats(dtype):
    info = np.finfo(dtype)
    edges = [info.max, info.min, info.tiny, info.smallest_subnormal, info.eps, 1 + info.eps]
    return np.array([0.0, -0.0, 1.0, -2.5, 0.1, *edges, 3.0, 4.0], dtype)


def _integers(dtype):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    return np.array([low, low + 1, 0, 1, 2, high - 1, high, high // 3, 100, 7, 8, 9, 10], dtype)


def _e5m2():
    """Every finite value of the type: only those, because the package rounds others wrongly."""
    values = e5m2_to_f32(np.arange(256))
    return values[np.isfinite(values)]


# An odd number of values each, so that packed types end within a byte.
VALUES = {
    "f64": _floats("f8"),
    "f32": _floats("f4"),
    "f16": _floats("f2"),
    "bf16": bf16_to_f32([0, 0x8000, 0x3F80, 0xC020, 0x7F7F, 0xFF7F, 0x0080, 0x0001, 0x8001]),
    "f8": _e5m2()[:-1],
    "i64": _integers("i8"),
    "i32": _integers("i4"),
    "i16": _integers("i2"),
    "i8": _integers("i1"),
    "u64": _integers("u8"),
    "u32": _integers("u4"),
    "u16": _integers("u2"),
    "u8": _integers("u1"),
    "bool": np.array([True, False, False, True, True, False, True, True, True]),
    "i4": np.array([*range(-8, 8), 3], "i1"),
    "i2": np.array([-2, -1, 0, 1, 1, 0, -2, -1, 1], "i1"),
    "i1": np.array([0, -1, -1, 0, 0, 0, -1, 0, -1, 0, -1], "i1"),
    "u4": np.array([*range(16), 9], "u1"),
    "u2": np.array([3, 2, 1, 0, 0, 3, 1, 2, 3], "u1"),
    "u1": np.array([1, 0, 0, 1, 1, 1, 0, 1, 0, 1, 1], "u1"),
    "t2": np.array([-1, 0, 1, 1, 0, -1, -1, 1, 0], "i1"),
    "t1": np.array([1, -1, -1, 1, 1, 1, -1, 1, -1, 1, 1], "i1"),
}
TYPES = list(VALUES)
# Tensors may have all types but the three that only metadata has. If the package learns another
# one, it has to be added above.
assert set(DTYPE_ALIAS.values()) == {DTYPE_ALIAS[t] for t in TYPES} and len(TYPES) == 22

# How safetensors calls them; packed types are widened to bytes.
STORED = {
    "f64": "F64", "f32": "F32", "f16": "F16", "bf16": "BF16", "f8": "F8_E5M2",
    "i64": "I64", "i32": "I32", "i16": "I16", "i8": "I8", "i4": "I8", "i2": "I8", "i1": "I8",
    "u64": "U64", "u32": "U32", "u16": "U16", "u8": "U8", "u4": "U8", "u2": "U8", "u1": "U8",
    "t2": "I8", "t1": "I8", "bool": "BOOL",
}  # fmt: skip

SHAPES = [(), (1,), (5,), (0,), (3, 2), (1, 1, 7), (2, 0, 3), (2, 1, 3, 1)]


def shaped(kind, shape):
    """Values of a type, repeated or cut to fill a shape. They begin at another place for each
    shape, so that one file has many of them."""
    count = int(np.prod(shape, dtype=int))
    start = len(shape) * 3 + count
    return np.resize(np.roll(VALUES[kind], -start), count).reshape(shape)


def tensors_of(kind):
    """All values of a type, and every shape of it."""
    arrays = {f"{kind}.all": VALUES[kind]}
    for shape in SHAPES:
        arrays[f"{kind}.{'x'.join(map(str, shape)) or 'scalar'}"] = shaped(kind, shape)
    return arrays


def spec(kind, array):
    """An array as the package takes it for a tensor of a type."""
    return TensorSpec(array, dtype=kind)


def scalar(kind, value):
    """A number as the package takes it for metadata of a type."""
    return bool(value) if kind == "bool" else ScalarValue(value.item(), dtype=kind)


def array(kind, values):
    """An array as the package takes it for metadata of a type."""
    return ScalarValue(values, dtype=kind)


def declared(kind, shape):
    return UninitializedTensor(kind, shape)


def bitset(bits):
    return Bitset(bits)
