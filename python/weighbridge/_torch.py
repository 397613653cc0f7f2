"""Tensors of torch. It is imported when somebody asks for them."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from . import _native
from ._dtypes import MORE, PLAIN, array_of, name_of, raw_of
from ._files import Slice

# torch has them under the names of ml_dtypes.
_BITS = {name: (getattr(torch, more, None), np.dtype(bits.replace("u", "i"))) for name, (more, bits) in MORE.items()}


def from_torch(tensor: Any) -> tuple[str, list[int], memoryview]:
    """The element type, the shape and the bytes of a tensor."""
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    shape = list(tensor.shape)
    for name, (dtype, _) in _BITS.items():
        if tensor.dtype == dtype:
            return name, shape, tensor.reshape(-1).view(torch.uint8).numpy().data
    array = tensor.numpy()
    return name_of(array.dtype), shape, raw_of(array)


def to_torch(name: str, array: NDArray[Any], device: Any) -> Any:
    """A tensor over the memory of an array, which must be one that may be changed."""
    array = array if all(step >= 0 for step in array.strides) else np.ascontiguousarray(array)
    if name in _BITS:
        dtype, bits = _BITS[name]
        if dtype is None:
            raise TypeError(f"this torch has no tensors of {name}")
        tensor = torch.from_numpy(array.view(bits)).view(dtype)
    else:
        tensor = torch.from_numpy(array)
    return tensor.to(device)


class Tensors:
    """The tensors of a file. Those that are stored as torch has them look at the file, which is mapped so
    that changing a tensor changes nothing but that; others are decoded."""

    def __init__(self, file: _native.File, path: Any, device: Any) -> None:
        self._file = file
        self.device = device
        self._storage = None
        if isinstance(path, (str, os.PathLike)) and os.path.isfile(path) and os.path.getsize(path) > 0:
            self._storage = torch.UntypedStorage.from_file(os.fspath(path), False, os.path.getsize(path))

    def in_place(self, name: str) -> Any:
        """A tensor over the file, or None."""
        encoding, _, shape, offset, size = self._file.describe(name)
        plain = encoding in _BITS or (encoding in PLAIN and encoding != "bitset")
        if self._storage is None or not plain or offset is None or not size:
            return None
        dtype = _BITS[encoding][0] if encoding in _BITS else torch.from_numpy(np.empty(0, PLAIN[encoding])).dtype
        # torch can't look at numbers that lie across two places of its kind.
        if dtype is None or offset % dtype.itemsize:
            return None
        flat = torch.empty(0, dtype=torch.uint8).set_(self._storage, offset, (size,))
        return flat.view(dtype).reshape(shape).to(self.device)

    def whole(self, name: str) -> Any:
        """A tensor."""
        found = self.in_place(name)
        if found is None:
            kind, shape, buffer = self._file.values(name)
            found = to_torch(kind, array_of(kind, shape, buffer).copy(), self.device)
        return found


class TorchSlice:
    """A tensor of which only what is asked for is read."""

    def __init__(self, inner: Slice, tensors: Tensors, name: str) -> None:
        self._inner = inner
        self._tensor = tensors.in_place(name)
        self._device = tensors.device
        self.get_shape = inner.get_shape
        self.get_dtype = inner.get_dtype

    def __getitem__(self, index: Any) -> Any:
        if self._tensor is not None:
            return self._tensor[index]
        name, part = self._inner.part(index)
        return to_torch(name, part.copy(), self._device)
