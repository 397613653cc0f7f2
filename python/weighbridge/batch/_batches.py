"""Batches of the kinds that engines hand out: texts and vectors are taken out of them, and columns added to them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._errors import RefusedError

Array = NDArray[Any]


class Made(NamedTuple):
    """A column to add: a matrix with a row for each row of the batch that has something.

    ``missing`` stands in the other rows; None: they are null, where a kind of batch has that.
    """

    name: str
    values: Array
    present: NDArray[np.bool_]
    missing: float | None

    def filled(self) -> Array:
        """A row for each row of the batch."""
        if self.present.all():
            return self.values
        if self.missing is None:
            message = f"a row has no text, and an array of numpy has no null to say so in {self.name!r}"
            raise RefusedError(message, field=self.name, hint="use batches of pyarrow or pandas, or leave such rows out")
        return self._spread(self.missing)

    def arrow(self) -> Any:
        """A fixed-size list for each row of the batch, or null."""
        import pyarrow as pa

        nulls = self.missing is None and not self.present.all()
        rows = self._spread(0) if nulls else self.filled()
        flat = pa.array(np.ascontiguousarray(rows).reshape(-1))
        return pa.FixedSizeListArray.from_arrays(flat, rows.shape[1], mask=pa.array(~self.present) if nulls else None)

    def objects(self) -> list[Array | None]:
        """An array for each row of the batch, or None."""
        if self.missing is not None:
            return list(self.filled())
        rows = iter(self.values)
        return [next(rows) if there else None for there in self.present]

    def _spread(self, missing: float) -> Array:
        rows = np.full((len(self.present), self.values.shape[1]), missing, self.values.dtype)
        rows[self.present] = self.values
        return rows


def is_column(batch: Any) -> bool:
    """Whether it is one column alone: an array of pyarrow, or a series of Daft."""
    pa = sys.modules.get("pyarrow")
    if pa is not None and isinstance(batch, (pa.Array, pa.ChunkedArray)):
        return True
    return type(batch).__module__.startswith("daft.series")


def texts_of(batch: Any, name: str) -> tuple[list[str], NDArray[np.bool_]]:
    """The texts of a column, without those that are missing, and which rows have one."""
    column = _column(batch, name)
    pa = sys.modules.get("pyarrow")
    if pa is not None and isinstance(column, (pa.Array, pa.ChunkedArray)):
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        known = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_null)
        if not any(is_text(kind) for is_text in known):
            raise RefusedError(f"the column {name!r} holds {column.type}, not texts", field=name)
        items = column.to_pylist()
    elif isinstance(column, np.ndarray) and column.dtype.kind not in "OUT" and column.size > 0:
        raise RefusedError(f"the column {name!r} holds {column.dtype}, not texts", field=name)
    else:
        items = _objects(column)
    present = np.array([item is not None for item in items], bool)
    texts = []
    for row, item in enumerate(items):
        if isinstance(item, str):
            texts.append(str(item))
        elif item is not None:
            message = f"the column {name!r} holds {type(item).__name__} in row {row} of the batch, not a text"
            raise RefusedError(message, field=name)
    return texts, present


def vectors_of(batch: Any, name: str, dimensions: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """The vectors of a column as a matrix, without those that are missing, and which rows have one."""
    column = _column(batch, name)
    pa = sys.modules.get("pyarrow")
    if pa is not None and isinstance(column, (pa.Array, pa.ChunkedArray)):
        rows, present = _arrow_vectors(column, name)
    elif isinstance(column, np.ndarray) and column.dtype != object:
        rows, present = column, np.ones(len(column), bool)
    else:
        items = _objects(column)
        present = np.array([item is not None for item in items], bool)
        rows = [np.asarray(item) for item in items if item is not None]
        if len({row.shape for row in rows}) > 1:
            raise RefusedError(f"the column {name!r} holds vectors of several lengths", field=name)
    matrix = np.asarray(rows)
    if matrix.size == 0:
        return np.zeros((int(present.sum()), dimensions), np.float32), present
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiu":
        raise RefusedError(f"the column {name!r} does not hold vectors", field=name)
    if matrix.shape[1] != dimensions:
        message = f"the column {name!r} holds vectors of {matrix.shape[1]} values, and the index rows of {dimensions}"
        raise RefusedError(message, field=name)
    matrix = matrix.astype(np.float32, copy=False)
    # What has no text has such a vector.
    known = ~np.isnan(matrix).any(axis=1)
    present[present] = known
    return matrix[known], present


def with_columns(batch: Any, made: Sequence[Made]) -> Any:
    """A batch of the same kind that has these columns, too; of a column alone, the columns alone: one, or a
    struct of several."""
    if is_column(batch):
        import pyarrow as pa

        arrays = [column.arrow() for column in made]
        return arrays[0] if len(made) == 1 else pa.StructArray.from_arrays(arrays, [column.name for column in made])
    for column in made:
        if column.name in _names(batch):
            message = f"the batch has a column {column.name!r} already"
            raise RefusedError(message, field=column.name, hint="name another one, or leave that one out")
    if isinstance(batch, dict):
        return {**batch, **{column.name: column.filled() for column in made}}
    if hasattr(batch, "append_column"):
        for column in made:
            batch = batch.append_column(column.name, column.arrow())
        return batch
    return batch.assign(**{column.name: _series(batch, column) for column in made})


def _names(batch: Any) -> list[str]:
    if isinstance(batch, dict):
        return list(batch)
    if hasattr(batch, "column_names"):
        return list(batch.column_names)
    if hasattr(batch, "columns") and hasattr(batch, "assign"):
        return list(batch.columns)
    message = f"a dict of arrays, a table of pyarrow or a frame of pandas is needed, not {type(batch).__name__}"
    raise TypeError(message)


def _column(batch: Any, name: str) -> Any:
    if is_column(batch):
        return batch.to_arrow() if hasattr(batch, "to_arrow") else batch
    names = _names(batch)
    if name not in names:
        known = ", ".join(map(str, names)) or "it has none"
        raise RefusedError(f"the batch has no column {name!r}: {known}", field=name)
    return batch[name] if not hasattr(batch, "append_column") else batch.column(name)


def _objects(column: Any) -> list[Any]:
    """The values of a column of numpy or pandas, or of a list; None where one is missing."""
    if hasattr(column, "isna"):
        return [None if gone else item for item, gone in zip(column, column.isna(), strict=True)]
    items: Iterable[Any] = column.tolist() if isinstance(column, np.ndarray) and column.ndim < 2 else column
    return [None if item is None or (isinstance(item, float) and item != item) else item for item in items]


def _arrow_vectors(column: Any, name: str) -> tuple[Any, NDArray[np.bool_]]:
    import pyarrow as pa

    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    matrices, present = [], [np.zeros(0, bool)]
    for chunk in chunks:
        # Engines have types of their own for tensors, over lists.
        chunk = chunk.storage if isinstance(chunk, pa.ExtensionArray) else chunk
        if pa.types.is_struct(chunk.type) and "data" in chunk.type.names:
            # A tensor of Daft, with its shape beside it.
            chunk = chunk.field("data")
        kind = chunk.type
        if not (pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind)):
            raise RefusedError(f"the column {name!r} holds {kind}, not vectors", field=name)
        there = chunk.is_valid()
        chunk = chunk.filter(there)
        present.append(np.asarray(there))
        if len(chunk) == 0:
            continue
        values = chunk.flatten()
        if values.null_count or len(values) % len(chunk) or len(set(chunk.value_lengths().to_pylist())) > 1:
            raise RefusedError(f"the column {name!r} holds vectors of several lengths, or with nulls", field=name)
        matrices.append(values.to_numpy(zero_copy_only=False).reshape(len(chunk), -1))
    if len({matrix.shape[1] for matrix in matrices}) > 1:
        raise RefusedError(f"the column {name!r} holds vectors of several lengths", field=name)
    return np.concatenate(matrices) if matrices else np.zeros((0, 0), np.float32), np.concatenate(present)


def _series(batch: Any, column: Made) -> Any:
    import pandas as pd

    # Filled one by one: a list of equal arrays would become a matrix.
    values = np.empty(len(column.present), object)
    for row, value in enumerate(column.objects()):
        values[row] = value
    return pd.Series(values, index=batch.index, dtype=object)
