"""For Daft: a function that takes a column of a frame and runs in workers of its own."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ._workers import Embed, Search


def daft_function(
    made: Embed | Search,
    *,
    workers: int | None = None,
    batch_size: int = 1024,
    use_process: bool | None = True,
    **options: Any,
) -> Callable[[Any], Any]:
    """What turns a column of Daft into the vectors of its texts, or into a struct of what is found for it:
    ``df.with_column("vector", daft_function(Embed("minilm"), workers=2)(df["text"]))``.

    Args:
        made: what is sent to each worker, which opens the model itself
        workers: how many; None: as many as Daft thinks best
        batch_size: the most rows of a call
        use_process: whether each worker is a process, which with several workers of one thread uses several cores
        options: others of ``daft.cls``, such as ``ray_options``
    """
    daft: Any = import_module("daft")
    kind = daft.DataType.from_arrow_type(made(_no_rows(made)).type)
    worker = _worker(daft.method.batch(return_dtype=kind, batch_size=batch_size))
    function: Callable[[Any], Any] = daft.cls(worker, max_concurrency=workers, use_process=use_process, **options)(made)
    return function


def _worker(marked: Callable[[Any], Any]) -> type:
    """A class for Daft, whose only method is marked with what it returns: that is known when a model is chosen."""

    def opens(self: Any, made: Embed | Search) -> None:
        self.made = made

    def call(self: Any, column: Any) -> Any:
        return self.made(column)

    return type("Worker", (), {"__init__": opens, "__call__": marked(call)})


def _no_rows(made: Embed | Search) -> Any:
    """A column without rows, of the kind that is asked with."""
    import pyarrow as pa

    texts = isinstance(made, Embed) or made.texts
    return pa.array([], pa.string() if texts else pa.list_(pa.float32()))
