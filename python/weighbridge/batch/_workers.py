"""What an engine makes one of in each of its workers, and calls with one batch after the other."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .._errors import RefusedError
from .._search import Index, Metric
from .._texts import Encoder, Precision, quantize_embeddings
from ._batches import Made, texts_of, vectors_of, with_columns


class _Worker:
    """Something that is opened once in each process, and again where it was sent to or forked into."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._opened: Any = None
        self._process = 0

    def __reduce__(self) -> tuple[Any, ...]:
        # The model is opened where it is used, when it is used first.
        return _unopened, (type(self), self._settings)

    def __repr__(self) -> str:
        first = next(iter(self._settings.values()))
        return f"weighbridge.batch.{type(self).__name__}({first!r})"

    def _here(self) -> Any:
        if self._opened is None or self._process != os.getpid():
            self._opened, self._process = self._open(), os.getpid()
        return self._opened

    def _open(self) -> Any:
        raise NotImplementedError

    def _made(self, batch: Any) -> list[Made]:
        raise NotImplementedError

    def schema(self, schema: Any) -> Any:
        """The schema of pyarrow that batches with the given one get."""
        return self(schema.empty_table()).schema

    def __call__(self, batch: Any) -> Any:
        return with_columns(batch, self._made(batch))


def _unopened(kind: type[_Worker], settings: dict[str, Any]) -> _Worker:
    made = kind.__new__(kind)
    _Worker.__init__(made, settings)
    return made


class Embed(_Worker):
    """Batches with texts to batches with texts and vectors.

    Args:
        model: a file or directory, or the name of a model in one of the caches, in each worker
        text: the column with the texts
        vector: the column to add
        compute: ``f32``, ``bf16`` or ``q8``
        threads: how many in each worker; None: all cores
        purpose: ``document`` or ``query``: the model's prompt for these stands in front, if it has one; None: its
            default prompt
        prompt_name: the name of another of the model's prompts
        prompt: a text to put in front of each; it goes before the others
        normalize: True scales vectors to length 1; None: as the model says
        truncate_dim: how many of a vector's first values to keep
        precision: ``float32``; ``binary`` or ``ubinary``, a bit a value; ``int8`` or ``uint8`` with ``ranges``
        ranges: the smallest and the largest value of each column, a matrix of two rows, as in `quantize_embeddings`
        missing: what a row without a text gets: ``nan``, a vector of that, or ``null``

    A batch is a dict of numpy arrays, a table or record batch of pyarrow, or a frame of pandas, and what is returned
    is of the same kind: with a matrix, a column of fixed-size lists, or a column of arrays. One column alone (an
    array of pyarrow, a series of Daft) gives the vectors alone.

    ``missing="null"`` is refused for dicts of arrays, which have no null, and ``nan`` where values are no floats. Readers
    of Parquet, such as pyarrow, fail on fixed-size lists of which some are null; Lance reads them.

    The model is opened at once, so that what is wrong with it is said here; a copy that was sent to another process
    opens it there.

    >>> import numpy as np
    >>> from weighbridge.batch import Embed
    >>> embed = Embed("quickstart/hf-model")                                            # doctest: +SKIP
    >>> embed({"id": np.arange(2), "text": np.array(["a truck", "hay"])})["vector"].shape  # doctest: +SKIP
    (2, 32)
    """

    def __init__(
        self,
        model: str | os.PathLike[str],
        text: str = "text",
        vector: str = "vector",
        *,
        compute: Literal["f32", "bf16", "q8"] = "f32",
        threads: int | None = 1,
        purpose: Literal["document", "query"] | None = "document",
        prompt_name: str | None = None,
        prompt: str | None = None,
        normalize: bool | None = None,
        truncate_dim: int | None = None,
        precision: Precision = "float32",
        ranges: NDArray[Any] | None = None,
        missing: Literal["nan", "null"] = "nan",
    ) -> None:
        if purpose not in ("document", "query", None):
            raise RefusedError(f"purpose {purpose!r} is not known", field="purpose", hint="document, query or None")
        if missing not in ("nan", "null"):
            raise RefusedError(f"missing {missing!r} is not known", field="missing", hint="nan or null")
        if truncate_dim is not None and truncate_dim < 1:
            raise RefusedError("a vector has at least one value", field="truncate_dim")
        if precision in ("int8", "uint8") and ranges is None:
            # Those of a batch would be others in the next one.
            message = f"precision {precision!r} needs the ends between which the values of each column lie"
            raise RefusedError(message, field="ranges", hint="give ranges, from a sample of all vectors")
        super().__init__(
            {
                "model": os.fspath(model),
                "text": text,
                "vector": vector,
                "compute": compute,
                "threads": threads,
                "purpose": purpose,
                "prompt_name": prompt_name,
                "prompt": prompt,
                "normalize": normalize,
                "truncate_dim": truncate_dim,
                "precision": precision,
                "ranges": ranges,
                "missing": missing,
            }
        )
        # So that names of prompts and the like are refused here, and not in the first batch.
        self.vectors([])

    @property
    def dimensions(self) -> int:
        """How many values a row of the column has; bits are eight to a value."""
        return int(self.vectors([]).shape[1])

    def vectors(self, texts: list[str]) -> NDArray[Any]:
        """The vectors of texts, a row for each."""
        said = self._settings
        encoder: Encoder = self._here()
        calls: dict[str | None, Callable[..., Any]]
        calls = {"document": encoder.encode_document, "query": encoder.encode_query, None: encoder.encode}
        found: NDArray[Any] = calls[said["purpose"]](
            texts,
            prompt_name=said["prompt_name"],
            prompt=said["prompt"],
            normalize_embeddings=said["normalize"],
            truncate_dim=said["truncate_dim"],
            show_progress_bar=False,
        )
        if said["precision"] == "float32":
            return found
        return quantize_embeddings(found, said["precision"], ranges=said["ranges"])

    def _open(self) -> Encoder:
        said = self._settings
        return Encoder(said["model"], said["compute"], said["threads"])

    def _made(self, batch: Any) -> list[Made]:
        texts, present = texts_of(batch, self._settings["text"])
        vectors = self.vectors(texts)
        if self._settings["missing"] == "null":
            return [Made(self._settings["vector"], vectors, present, None)]
        if vectors.dtype.kind != "f" and not present.all():
            message = f"row {int(present.argmin())} of the batch has no text, and {vectors.dtype} has no NaN to say so"
            raise RefusedError(message, field=self._settings["text"], hint='missing="null", or leave such rows out')
        return [Made(self._settings["vector"], vectors, present, float("nan"))]


class Search(_Worker):
    """Batches with vectors or texts to batches with the nearest rows of an index.

    Args:
        index: a file of any format, in each worker, or a matrix
        vector: the column with the vectors
        text: a column with texts instead; the file says which model they are asked with, or ``model`` does
        k: how many rows; all where there are fewer
        rows: the column to add for the numbers of the rows, the nearest first
        scores: the column to add for their scores
        tensor: which matrix of the file, if it has several
        metric: ``cosine``, ``dot`` or ``l2``, the negative distance
        model: what makes vectors of texts
        filter: ``KEY=VALUE``: only rows whose records have it

    What is found is exact. A row without a vector, or with one of NaN, finds nothing: -1 and NaN, which are also there
    where ``filter`` leaves less than ``k`` rows. One column alone gives a struct of rows and scores.

    >>> import numpy as np
    >>> from weighbridge.batch import Search
    >>> search = Search(np.eye(3, dtype=np.float32), k=2)
    >>> search({"vector": np.array([[0.1, 0.9, 0.3]])})["rows"].tolist()
    [[1, 2]]
    """

    def __init__(
        self,
        index: str | os.PathLike[str] | NDArray[Any],
        vector: str = "vector",
        *,
        text: str | None = None,
        k: int = 10,
        rows: str = "rows",
        scores: str = "scores",
        tensor: str | None = None,
        metric: Metric = "cosine",
        model: str | os.PathLike[str] | None = None,
        filter: str | Iterable[str] = (),
    ) -> None:
        if k < 1:
            raise RefusedError("at least one row is looked for", field="k")
        super().__init__(
            {
                "index": os.fspath(index) if isinstance(index, (str, os.PathLike)) else index,
                "vector": vector,
                "text": text,
                "k": k,
                "rows": rows,
                "scores": scores,
                "tensor": tensor,
                "metric": metric,
                "model": None if model is None else os.fspath(model),
                "filter": filter if isinstance(filter, str) else tuple(filter),
            }
        )
        self._here()

    def __repr__(self) -> str:
        index = self._settings["index"]
        shown = repr(index) if isinstance(index, str) else f"<a matrix of {len(index)} rows>"
        return f"weighbridge.batch.Search({shown})"

    @property
    def texts(self) -> bool:
        """Whether it asks with texts."""
        return self._settings["text"] is not None

    def _open(self) -> Index:
        said = self._settings
        return Index(said["index"], tensor=said["tensor"], metric=said["metric"], model=said["model"])

    def _made(self, batch: Any) -> list[Made]:
        said, index = self._settings, self._here()
        queries: Any
        if said["text"] is not None:
            queries, present = texts_of(batch, said["text"])
        else:
            queries, present = vectors_of(batch, said["vector"], index.dimensions)
        # As many columns in every batch, also where nothing is asked or little is left by the filter.
        shape = (len(queries), min(said["k"], len(index)))
        scores, rows = np.full(shape, np.nan, np.float32), np.full(shape, -1, np.int64)
        if len(queries) > 0:
            found = index.search(queries, said["k"], filter=said["filter"], show_progress_bar=False)
            scores[:, : found[0].shape[1]], rows[:, : found[1].shape[1]] = found
        return [Made(said["rows"], rows, present, -1), Made(said["scores"], scores, present, float("nan"))]
