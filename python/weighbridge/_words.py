"""Words to vectors and neighbours, with the names of gensim."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._reports import Evaluation, report_of
from ._word_store import Key, Vector, WordStore


class KeyedVectors(WordStore):
    """Vectors that go by words: those of a file of any format, or some that were added.

    Words that the file lacks are made of their parts where the file knows how to (fastText, finalfusion,
    floret); ``word in vectors`` is about those of the file.

    >>> import numpy as np, weighbridge
    >>> vectors = weighbridge.KeyedVectors(2)
    >>> vectors.add_vectors(["north", "east", "north-east"], np.array([[0, 1], [1, 0], [1, 1]]))
    [0, 1, 2]
    >>> vectors.most_similar(positive=["north", "east"], topn=1)
    [('north-east', 1.0)]
    """

    def get_mean_vector(
        self,
        keys: Sequence[Key | Vector],
        weights: Sequence[float] | None = None,
        pre_normalize: bool = True,
        post_normalize: bool = False,
        ignore_missing: bool = True,
    ) -> Vector:
        """The weighted mean of some vectors."""
        if len(keys) == 0:
            raise ValueError("cannot compute mean with no input")
        weights = [1.0] * len(keys) if weights is None else weights
        if len(weights) != len(keys):
            raise ValueError("keys and weights array must have same number of elements")
        mean, total = np.zeros(self.vector_size, np.float32), 0.0
        for key, weight in zip(keys, weights, strict=True):
            if isinstance(key, np.ndarray):
                vector: Vector = np.asarray(key, np.float32)
            else:
                try:
                    vector = self.get_vector(key)
                except KeyError:
                    if ignore_missing:
                        continue
                    raise
            if pre_normalize and not isinstance(key, np.ndarray):
                vector = vector / max(np.linalg.norm(vector), np.float32(1e-30))
            mean += np.float32(weight) * vector
            total += abs(weight)
        if total > 0:
            mean /= np.float32(total)
        return mean / np.linalg.norm(mean) if post_normalize else mean

    def most_similar(
        self,
        positive: Any = None,
        negative: Any = None,
        topn: int | None = 10,
        clip_start: int = 0,
        clip_end: int | None = None,
        restrict_vocab: int | None = None,
    ) -> list[tuple[str, float]] | NDArray[np.float32]:
        """The words nearest to the sum of the positive ones less the negative ones, none of these among them.

        Args:
            positive, negative: words, rows or vectors, one or several; pairs of one and its weight
            topn: how many; None gives the similarities of all words
            clip_start, clip_end: the rows that are looked at
            restrict_vocab: the same as ``clip_end``
        """
        weighted = [(key, weight) for key, weight in _weighted(positive, 1.0)]
        weighted += [(key, -weight) for key, weight in _weighted(negative, 1.0)]
        if isinstance(topn, (int, np.integer)) and topn < 1:
            return []
        if not weighted:
            raise ValueError("cannot compute mean with no input")
        mean = self.get_mean_vector(
            [key for key, _ in weighted],
            [weight for _, weight in weighted],
            pre_normalize=True,
            post_normalize=True,
            ignore_missing=False,
        )
        end = restrict_vocab if restrict_vocab is not None else clip_end
        if topn is None:
            rows = self.vectors[clip_start:end]
            lengths = np.linalg.norm(rows, axis=1)
            all_of_them: NDArray[np.float32] = rows @ mean / np.maximum(lengths, np.float32(1e-30))
            return all_of_them
        exclude = [
            row
            for key, _ in weighted
            if not isinstance(key, np.ndarray)
            and (row := key if isinstance(key, (int, np.integer)) else self._find(key)) is not None
        ]
        exclude += range(clip_start)
        found = self._native.nearest(mean.tolist(), int(topn), [int(row) for row in exclude], end)
        return [(self._native.word(row), score) for row, score in found]

    def most_similar_cosmul(
        self, positive: Any = None, negative: Any = None, topn: int | None = 10, restrict_vocab: int | None = None
    ) -> list[tuple[str, float]] | NDArray[np.float32]:
        """The same by the product of the cosines with the positive ones over that with the negative ones, each moved
        to lie between 0 and 1 (Levy and Goldberg, 2014)."""
        asked = [_weighted(keys, 1.0) for keys in (positive, negative)]
        if isinstance(topn, (int, np.integer)) and topn < 1:
            return []
        rows = self.get_normed_vectors()[:restrict_vocab]
        scores = np.ones(len(rows), np.float32)
        for keys, power in zip(asked, (1.0, -1.0), strict=True):
            for key, _ in keys:
                vector = key if isinstance(key, np.ndarray) else self.get_vector(key)
                cosines = rows @ (vector / max(np.linalg.norm(vector), np.float32(1e-30)))
                # The small number keeps the division away from zero.
                scores *= ((1 + cosines) / 2 + (0 if power > 0 else 0.000001)) ** power
        if topn is None:
            return scores
        given = {self.get_index(key, -1) for keys in asked for key, _ in keys if not isinstance(key, np.ndarray)}
        order = (int(row) for row in np.argsort(-scores, kind="stable") if int(row) not in given)
        return [(self.index_to_key[row], float(scores[row])) for row, _ in zip(order, range(int(topn)), strict=False)]

    def most_similar_to_given(self, key: Key, keys: Sequence[Key]) -> Key:
        """Which of some words is nearest to a word."""
        return keys[int(np.argmax([self.similarity(key, other) for other in keys]))]

    def relative_cosine_similarity(self, first: Key, second: Key, topn: int = 10) -> np.float32:
        """The cosine of two words over the sum of those of the ``topn`` words nearest to the first."""
        near = self.similar_by_key(first, topn)
        return np.float32(self.similarity(first, second) / sum(cosine for _, cosine in near))

    def similar_by_key(self, key: Key, topn: int = 10, restrict_vocab: int | None = None) -> Any:
        """The words nearest to a word."""
        return self.most_similar(positive=[key], topn=topn, restrict_vocab=restrict_vocab)

    similar_by_word = similar_by_key

    def similar_by_vector(self, vector: Any, topn: int = 10, restrict_vocab: int | None = None) -> Any:
        """The words nearest to a vector."""
        return self.most_similar(
            positive=[np.asarray(vector, np.float32)], topn=topn, restrict_vocab=restrict_vocab
        )

    def similarity(self, first: Key, second: Key) -> np.float32:
        """The cosine between the vectors of two words."""
        # In double precision, so that a word is exactly like itself.
        a, b = (self.get_vector(key).astype(np.float64) for key in (first, second))
        return np.float32(np.dot(a, b) / max(np.sqrt(np.dot(a, a)) * np.sqrt(np.dot(b, b)), 1e-30))

    def n_similarity(self, first: Sequence[Key], second: Sequence[Key]) -> np.float32:
        """The cosine between the mean vectors of two lists of words."""
        if not (len(first) and len(second)):
            raise ZeroDivisionError("at least one of the passed list is empty")
        a, b = (self.get_mean_vector(keys, pre_normalize=False, post_normalize=True) for keys in (first, second))
        return np.float32(np.dot(a, b))

    def distance(self, first: Key, second: Key) -> np.float32:
        """One less the cosine between the vectors of two words."""
        return np.float32(1 - self.similarity(first, second))

    def distances(self, key: Key | Vector, others: Iterable[Key] = ()) -> Vector:
        """One less the cosine of a word with each of the others, or with all words."""
        vector = key if isinstance(key, np.ndarray) else self.get_vector(key)
        others = list(others)
        rows = self.vectors if not others else np.vstack([self.get_vector(other) for other in others])
        return np.asarray(1 - self.cosine_similarities(vector, rows), np.float32)

    @staticmethod
    def cosine_similarities(first: Any, others: Any) -> Any:
        """The cosine of a vector with each of some rows."""
        lengths = np.linalg.norm(first) * np.linalg.norm(others, axis=1)
        return np.dot(others, first) / lengths

    def rank_by_centrality(self, words: Sequence[Key], use_norm: bool = True) -> list[tuple[float, Key]]:
        """Words by how near they are to the mean of all of them, the nearest first."""
        known = [word for word in words if isinstance(word, int) or word in self]
        if not known:
            raise ValueError("cannot select a word from an empty list")
        rows = np.vstack([self.get_vector(word, norm=use_norm) for word in known]).astype(np.float32)
        mean = self.get_mean_vector(list(rows), post_normalize=True)
        return sorted(zip((rows @ mean).tolist(), known, strict=True), key=lambda pair: pair[0], reverse=True)

    def doesnt_match(self, words: Sequence[Key]) -> Key:
        """The word that is farthest from the mean of all of them."""
        return self.rank_by_centrality(words)[-1][1]

    def closer_than(self, first: Key, second: Key) -> list[str]:
        """All words that are nearer to the first than the second is."""
        distances = self.distances(first)
        row = self.get_index(first)
        limit = distances[self.get_index(second)]
        return [self.index_to_key[i] for i in np.where(distances < limit)[0] if i != row]

    def rank(self, first: Key, second: Key) -> int:
        """How many words are nearer to the first than the second is, and one."""
        return len(self.closer_than(first, second)) + 1

    def evaluate(self, questions: str | os.PathLike[str]) -> Evaluation:
        """How many analogies of a question file come out right, as ``weighbridge evaluate`` tells it."""
        with open(questions, "rb") as file:
            return report_of(Evaluation, self._native.evaluate(os.fspath(questions), file.read()))

    def evaluate_word_analogies(
        self,
        analogies: str | os.PathLike[str],
        restrict_vocab: int = 300000,
        case_insensitive: bool = True,
        dummy4unknown: bool = False,
    ) -> tuple[float, list[dict[str, Any]]]:
        """How many analogies come out right: the share, and the right and wrong ones of each section."""
        rows = range(min(restrict_vocab, len(self)))
        known: dict[str, int] = {}
        for row in reversed(rows):
            key = self.index_to_key[row]
            known[key.upper() if case_insensitive else key] = row
        excluded_case = str.upper if case_insensitive else str
        sections: list[dict[str, Any]] = []
        with open(analogies, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.startswith(": "):
                    sections.append({"section": line.lstrip(": ").strip(), "correct": [], "incorrect": []})
                    continue
                if not sections:
                    raise ValueError(f"Missing section header before line #{number} in {analogies}")
                words = [excluded_case(word) for word in line.split()]
                if len(words) != 4:
                    continue
                if any(word not in known for word in words):
                    if dummy4unknown:
                        sections[-1]["incorrect"].append(tuple(words))
                    continue
                a, b, c, expected = words
                predicted = self._analogy([known[a], known[b], known[c]], known, excluded_case, {a, b, c}, restrict_vocab)
                sections[-1]["correct" if predicted == expected else "incorrect"].append((a, b, c, expected))
        total: dict[str, Any] = {
            "section": "Total accuracy",
            "correct": [item for section in sections for item in section["correct"]],
            "incorrect": [item for section in sections for item in section["incorrect"]],
        }
        sections.append(total)
        asked = len(total["correct"]) + len(total["incorrect"])
        return (len(total["correct"]) / asked if asked else 0.0), sections

    def _analogy(
        self, rows: list[int], known: dict[str, int], case: Any, ignore: set[str], limit: int
    ) -> str | None:
        a, b, c = rows
        found = self.most_similar(positive=[c, b], negative=[a], topn=5, restrict_vocab=limit)
        for word, _ in found:
            name: str = case(word)
            if name in known and name not in ignore:
                return name
        return None


def _weighted(keys: Any, weight: float) -> list[tuple[Any, float]]:
    if keys is None:
        return []
    if isinstance(keys, (str, int, np.integer)) or (isinstance(keys, np.ndarray) and keys.ndim == 1):
        keys = [keys]
    return [
        (key[0], float(key[1])) if isinstance(key, tuple) else (key, weight) for key in keys
    ]
