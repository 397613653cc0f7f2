"""Open, check, convert, shrink and use files of embeddings and model weights."""

import os as _os

from . import _native
from ._errors import (
    Cancelled,
    ChangedError,
    Error,
    FileNotFound,
    FormatError,
    InferenceError,
    IoError,
    LimitError,
    LossError,
    MalformedError,
    NotFound,
    RefusedError,
    TokenizerError,
    UnrecognisedError,
    UnsupportedError,
)
from ._files import Container, Records, Slice, TensorInfo, load, open, save
from ._native import __version__
from ._pairs import CrossEncoder
from ._reports import Conversion, Difference, Evaluation, Finding, Quantized, Recall, Summary, Verdict
from ._safe_open import safe_open
from ._search import Index, semantic_search
from ._texts import Embedder, Encoder, quantize_embeddings
from ._verbs import convert, diff, inspect, quantize, recall, verify
from ._words import KeyedVectors

if hasattr(_os, "register_at_fork"):
    # Threads are not there in a child.
    _os.register_at_fork(after_in_child=_native.forked)

__all__ = [
    "Cancelled",
    "ChangedError",
    "Container",
    "Conversion",
    "CrossEncoder",
    "Difference",
    "Embedder",
    "Encoder",
    "Error",
    "Evaluation",
    "FileNotFound",
    "Finding",
    "FormatError",
    "Index",
    "InferenceError",
    "IoError",
    "KeyedVectors",
    "LimitError",
    "LossError",
    "MalformedError",
    "NotFound",
    "Quantized",
    "Recall",
    "Records",
    "RefusedError",
    "Slice",
    "Summary",
    "TensorInfo",
    "TokenizerError",
    "UnrecognisedError",
    "UnsupportedError",
    "Verdict",
    "__version__",
    "convert",
    "diff",
    "inspect",
    "load",
    "open",
    "quantize",
    "quantize_embeddings",
    "recall",
    "safe_open",
    "save",
    "semantic_search",
    "verify",
]
