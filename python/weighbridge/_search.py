"""Vectors to the nearest rows."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from . import _native
from ._dtypes import array_of, raw_of
from ._progress import bar

Metric = Literal["cosine", "dot", "l2"]
Found = tuple[NDArray[np.float32], NDArray[np.int64]]


class Index:
    """Rows that can be searched: those of a file of any format, or of an array.

    Args:
        rows: a file, or a matrix
        tensor: which matrix of the file, if it has several
        metric: ``cosine``, ``dot`` or ``l2``, the negative distance; higher is nearer
        model: what makes vectors of texts; None: the model that the file says its rows were made with

    >>> import numpy as np, weighbridge
    >>> index = weighbridge.Index(np.eye(3, dtype=np.float32))
    >>> scores, rows = index.search(np.array([0.1, 0.9, 0.3], np.float32), k=2)
    >>> rows.tolist()
    [1, 2]
    """

    def __init__(
        self,
        rows: str | os.PathLike[str] | NDArray[Any],
        *,
        tensor: str | None = None,
        metric: Metric = "cosine",
        model: str | os.PathLike[str] | None = None,
    ) -> None:
        self.metric: Metric = metric
        self._model = None if model is None else os.fspath(model)
        self._encoder: _native.Encoder | None = None
        self._process = 0
        self._file = os.fspath(rows) if isinstance(rows, (str, os.PathLike)) else None
        self._tensor = tensor
        if self._file is not None:
            self._native = _native.Index(_native.open(self._file, None), tensor)
        else:
            matrix = np.ascontiguousarray(rows, np.float32)
            if matrix.ndim != 2:
                raise ValueError(f"a matrix is needed, not an array with {matrix.ndim} dimensions")
            tensors = [("rows", "f32", list(matrix.shape), raw_of(matrix))]
            self._native = _native.Index(_native.build(tensors, [], [], None, None, True), None)

    def __repr__(self) -> str:
        source = "an array" if self._file is None else repr(self._file)
        return f"<weighbridge.Index of {source} with {len(self)} rows of {self.dimensions} values>"

    def __reduce__(self) -> tuple[Any, ...]:
        if self._file is None:
            raise TypeError("an index of an array can't be pickled: send the array, or save it to a file")
        # Another process opens the file itself.
        return _again, (self._file, self._tensor, self.metric, self._model)

    def __len__(self) -> int:
        return len(self._native)

    @property
    def dimensions(self) -> int:
        """How many values a row has."""
        return self._native.dimensions

    def record(self, row: int) -> dict[str, Any] | None:
        """What is said of a row."""
        found = self._native.record(self._checked(row))
        return None if found is None else json.loads(found)

    def word(self, row: int) -> str | None:
        """The word of a row."""
        return self._native.word(self._checked(row))

    def _checked(self, row: int) -> int:
        if not 0 <= row < len(self):
            raise IndexError(f"there are {len(self)} rows")
        return int(row)

    def search(
        self,
        queries: str | Sequence[str] | NDArray[Any],
        k: int = 10,
        *,
        filter: str | Iterable[str] = (),
        show_progress_bar: bool | None = None,
    ) -> Found:
        """The scores and the numbers of the ``k`` nearest rows, the nearest first: of one query two arrays,
        of several two matrices. It is exact.

        Args:
            queries: vectors; or texts, if the file says which model its rows were made with
            k: how many rows; all where there are fewer
            filter: ``KEY=VALUE``: only rows whose records have it
            show_progress_bar: with tqdm; None: only where logging shows information
        """
        single = isinstance(queries, str)
        if isinstance(queries, str) or (len(queries) > 0 and isinstance(queries[0], str)):
            matrix = self._vectors([queries] if isinstance(queries, str) else list(queries))
        else:
            matrix = np.asarray(queries, np.float32)
            single = matrix.ndim == 1
            single = single and matrix.size > 0
            matrix = np.atleast_2d(matrix) if matrix.size else np.zeros((0, self.dimensions), np.float32)
        if matrix.ndim != 2 or matrix.shape[1] != self.dimensions:
            raise ValueError(f"rows have {self.dimensions} values, and queries the shape {matrix.shape}")
        with bar(show_progress_bar) as tell:
            filters = [filter] if isinstance(filter, str) else list(filter)
            scores, rows, count = self._native.search(matrix.tobytes(), max(k, 0), self.metric, filters, tell)
        shape = [len(matrix), count]
        found = array_of("f32", shape, scores).copy(), array_of("i64", shape, rows).copy()
        return (found[0][0], found[1][0]) if single else found

    def _vectors(self, texts: list[str]) -> NDArray[Any]:
        # The threads of a model are not there in a process that was forked.
        if self._encoder is None or self._process != os.getpid():
            self._encoder, self._process = self._native.encoder(self._model), os.getpid()
        buffer = self._encoder.embed(texts, None, "query")
        return array_of("f32", [len(texts), self._encoder.dimensions], buffer)


def _again(file: str, tensor: str | None, metric: Metric, model: str | None) -> Index:
    return Index(file, tensor=tensor, metric=metric, model=model)


def semantic_search(
    query_embeddings: Any,
    corpus_embeddings: Any,
    query_chunk_size: int = 100,
    corpus_chunk_size: int = 500000,
    top_k: int = 10,
) -> list[list[dict[str, int | float]]]:
    """The nearest vectors of a corpus for each query, by the cosine, as sentence-transformers gives them.

    The chunk sizes are there for code that names them.

    >>> import numpy as np, weighbridge
    >>> weighbridge.semantic_search(np.eye(2)[:1], np.eye(2), top_k=1)
    [[{'corpus_id': 0, 'score': 1.0}]]
    """
    index = Index(np.asarray(corpus_embeddings, np.float32))
    queries = np.atleast_2d(np.asarray(query_embeddings, np.float32))
    scores, rows = index.search(queries, top_k)
    return [
        [{"corpus_id": row, "score": score} for row, score in zip(r, s, strict=True)]
        for r, s in zip(rows.tolist(), scores.tolist(), strict=True)
    ]
