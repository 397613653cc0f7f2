"""Pairs of texts to scores, with the names of sentence-transformers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from . import _native
from ._dtypes import array_of
from ._errors import RefusedError
from ._progress import Tell, bar
from ._texts import check_process


class CrossEncoder:
    """A model that reads two texts together and says how well one answers the other.

    Args:
        model: a file or directory, or the name of a model in one of the caches
        compute: ``f32``, ``bf16`` or ``q8``
        threads: how many; None: all cores
    """

    def __init__(
        self,
        model: str | os.PathLike[str],
        compute: Literal["f32", "bf16", "q8"] = "f32",
        threads: int | None = None,
    ) -> None:
        self._settings = (os.fspath(model), compute, threads)
        self._native = _native.Reranker(os.fspath(model), compute, None if threads is None else max(threads, 0))
        self._process = os.getpid()

    def __repr__(self) -> str:
        return f"weighbridge.CrossEncoder({self._settings[0]!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process opens the model itself.
        return type(self), self._settings

    @property
    def max_length(self) -> int:
        """The most tokens of a pair; of longer ones the longer text is cut off first."""
        return self._native.max_tokens

    @property
    def num_labels(self) -> int:
        """How many scores a pair has."""
        return self._native.labels

    def predict(
        self,
        sentences: Sequence[str] | Iterable[Sequence[str]],
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        *,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
    ) -> Any:
        """The scores of pairs, with the activation that the model names: of one pair a number, of a list an
        array; where pairs have several scores, a row for each.

        Args:
            sentences: a pair of texts, or a list of pairs
            batch_size: not used: pairs are batched by their lengths
            show_progress_bar: with tqdm; None: only where logging shows information
            convert_to_numpy: False gives a list
            convert_to_tensor: a tensor of torch
        """
        check_process(self._process)
        pairs: list[Any] = list(sentences)
        single = len(pairs) == 2 and all(isinstance(text, str) for text in pairs)
        pairs = [pairs] if single else pairs
        for pair in pairs:
            if isinstance(pair, str) or len(pair) != 2 or not all(isinstance(text, str) for text in pair):
                raise RefusedError(f"{pair!r} is not a pair of texts", field="sentences")
        with bar(show_progress_bar) as tell:
            scores = self._scores([(str(a), str(b)) for a, b in pairs], tell)
        if convert_to_tensor:
            import torch

            made = torch.from_numpy(scores)
            return made[0] if single else made
        if single:
            return scores[0]
        return scores if convert_to_numpy else list(scores)

    def _scores(self, pairs: list[tuple[str, str]], tell: Tell | None) -> NDArray[Any]:
        # Whoever gets them may change them.
        scores = array_of("f32", [len(pairs), self.num_labels], self._native.score(pairs, tell)).copy()
        return scores[:, 0] if self.num_labels == 1 else scores

    def rank(
        self,
        query: str,
        documents: Sequence[str],
        top_k: int | None = None,
        return_documents: bool = False,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
    ) -> list[dict[str, Any]]:
        """The documents by how well they answer a question, the best first: each with its ``corpus_id`` and
        ``score``, and its ``text`` if ``return_documents`` is set."""
        if self.num_labels != 1:
            raise RefusedError(f"the model has {self.num_labels} scores for a pair; ranking takes one")
        scores = self.predict([(query, document) for document in documents], batch_size, show_progress_bar)
        order = sorted(range(len(documents)), key=lambda row: (-float(scores[row]), row))
        hits = []
        for row in order[:top_k]:
            hit: dict[str, Any] = {"corpus_id": row, "score": float(scores[row])}
            if return_documents:
                hit["text"] = documents[row]
            hits.append(hit)
        return hits
