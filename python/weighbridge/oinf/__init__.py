"""OINF files from dataclasses, and back.

>>> from dataclasses import dataclass
>>> import os, tempfile, numpy as np
>>> from weighbridge.oinf import SizeVar, TensorSpec, read_oinf, write_oinf
>>> @dataclass
... class Model:
...     D: SizeVar
...     mode: str
...     w: TensorSpec
>>> path = os.path.join(tempfile.mkdtemp(), "model.oinf")
>>> write_oinf(Model(D=SizeVar(2), mode="relu", w=TensorSpec(np.array([1, 2], np.float32))), path)
>>> file = read_oinf(path)
>>> file.sizevars, file.metadata, file.tensors["w"].tolist()
({'D': 2}, {'mode': 'relu'}, [1.0, 2.0])
"""

from ._fields import Bitset, OinfError, ScalarValue, SizeVar, TensorSpec, UninitializedTensor
from ._files import OinfFile, dataclass_to_oinf, read_oinf, write_oinf
from ._notation import verify_oinf

__all__ = [
    "Bitset",
    "OinfError",
    "OinfFile",
    "ScalarValue",
    "SizeVar",
    "TensorSpec",
    "UninitializedTensor",
    "dataclass_to_oinf",
    "read_oinf",
    "verify_oinf",
    "write_oinf",
]
