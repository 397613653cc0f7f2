"""Where the vectors of words are: in a file, or in memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from . import _native
from ._dtypes import array_of, raw_of
from ._errors import RefusedError, as_argument

Key = str | int
Vector = NDArray[np.float32]


class WordStore:
    """Words with their vectors. A file is looked at in place until something is added."""

    def __init__(self, vector_size: int) -> None:
        self.vector_size = int(vector_size)
        self._file: _native.File | None = None
        # Where that is, and of which format.
        self._source: tuple[str, str | None] | None = None
        # The words as they can be searched; made when they are asked for.
        self._ready: _native.Words | None = None
        # Those of the file, which make vectors out of parts of words.
        self._parts: _native.Words | None = None
        self._index_to_key: list[str] | None = []
        self._key_to_index: dict[str, int] | None = {}
        self._vectors: Vector | None = np.zeros((0, self.vector_size), np.float32)

    @classmethod
    def load(cls, path: str | os.PathLike[str], mmap: str | None = None) -> Self:
        """Opens a file. It is always mapped; ``mmap`` is there for code that names it."""
        return cls._of(os.fspath(path), None)

    @classmethod
    def load_word2vec_format(
        cls,
        fname: str | os.PathLike[str],
        fvocab: None = None,
        binary: bool = False,
        encoding: str = "utf8",
        unicode_errors: str = "strict",
        limit: int | None = None,
        datatype: Any = np.float32,
        no_header: bool = False,
    ) -> Self:
        """Opens a file of word2vec, or text with or without a first line that tells the numbers.

        Words are UTF-8, and vectors f32. There are no counts of words, so ``fvocab`` is refused."""
        if fvocab is not None:
            raise ValueError("counts of words are not kept: fvocab must be None")
        if np.dtype(datatype) != np.float32:
            raise ValueError("vectors are float32")
        format = "word2vec" if binary else "glove" if no_header else "text"
        found = cls._of(os.fspath(fname), format)
        if limit is not None and limit < len(found):
            words, rows = found.index_to_key[:limit], found.vectors[:limit].copy()
            found = cls(found.vector_size)
            found._set(words, rows)
        return found

    @classmethod
    def _of(cls, path: str, format: str | None) -> Self:
        file = _native.open(path, format)
        words = _native.Words(file)
        made = cls(words.dimensions)
        made._file, made._ready, made._parts = file, words, words
        made._source = path, format
        made._index_to_key = made._key_to_index = made._vectors = None
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        # A file is opened again by who gets this; words that were added go along.
        added = None if self._file is not None else (self.index_to_key, self.vectors)
        return _again, (type(self), self.vector_size, self._source, added)

    def save(self, path: str | os.PathLike[str], *, format: str | None = None) -> None:
        """Writes the words and their vectors; the extension says the format."""
        try:
            _native.write(self._container(), os.fspath(path), format, [], True, False)
        except RefusedError as error:
            raise as_argument(error) from None

    def save_word2vec_format(
        self,
        fname: str | os.PathLike[str],
        fvocab: None = None,
        binary: bool = False,
        write_header: bool = True,
    ) -> None:
        """Writes word2vec's binary file, or text with or without a first line that tells the numbers."""
        if fvocab is not None:
            raise ValueError("counts of words are not kept: fvocab must be None")
        if binary and not write_header:
            raise ValueError("a binary file has a first line that tells the numbers")
        self.save(fname, format="word2vec" if binary else "text" if write_header else "glove")

    def _container(self) -> _native.File:
        """The words as a container: that of the file, if nothing was added."""
        if self._file is not None:
            return self._file
        rows = self.vectors
        tensors = [("embeddings", "f32", list(rows.shape), raw_of(rows))]
        return _native.build(tensors, [], [], self.index_to_key, None, True)

    @property
    def _native(self) -> _native.Words:
        if self._ready is None:
            if len(self) == 0:
                raise KeyError("there are no words")
            self._ready = _native.Words(self._container())
        return self._ready

    def __len__(self) -> int:
        return len(self._ready) if self._index_to_key is None and self._ready is not None else len(self.index_to_key)

    def __repr__(self) -> str:
        return f"KeyedVectors<vector_size={self.vector_size}, {len(self)} keys>"

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._find(key) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self.index_to_key)

    def __getitem__(self, keys: Key | Iterable[Key]) -> Vector:
        if isinstance(keys, (str, int, np.integer)):
            return self.get_vector(keys)
        rows = [self.get_vector(key) for key in keys]
        return np.vstack(rows) if rows else np.zeros((0, self.vector_size), np.float32)

    def __setitem__(self, keys: Key | Sequence[Key], vectors: Any) -> None:
        self.add_vectors(keys, vectors, replace=True)

    @property
    def index_to_key(self) -> list[str]:
        """All words, by row."""
        if self._index_to_key is None:
            self._index_to_key = self._native.words()
        return self._index_to_key

    @property
    def key_to_index(self) -> dict[str, int]:
        """Rows by word."""
        if self._key_to_index is None:
            self._key_to_index = {key: row for row, key in enumerate(self.index_to_key)}
        return self._key_to_index

    @property
    def vectors(self) -> Vector:
        """All vectors, a row for each word; where the file has f32 they are looked at in place."""
        if self._vectors is None:
            file = self._container()
            (name, *_) = sorted(file.names(), key=lambda name: -_size(file, name))
            self._vectors = np.asarray(array_of(*file.values(name, 0, len(self))), np.float32)
        return self._vectors

    def add_vectors(
        self, keys: Key | Sequence[Key], weights: Any, extras: None = None, replace: bool = False
    ) -> list[int]:
        """Adds words with their vectors, in memory: the file stays as it is. Words that are there get the new
        vectors if ``replace``. Returns the rows."""
        if extras is not None:
            raise ValueError("words have nothing but vectors: extras must be None")
        words = [key for key in ([keys] if isinstance(keys, (str, int, np.integer)) else keys) if isinstance(key, str)]
        if not isinstance(keys, str) and len(words) != np.size(keys):
            raise TypeError("keys are words")
        given = np.asarray(weights, np.float32).reshape(len(words), self.vector_size)
        places, rows = dict(self.key_to_index), [self.vectors]
        found, replaced = [], []
        for word, row in zip(words, given, strict=True):
            if word in places:
                if replace:
                    replaced.append((places[word], row))
            else:
                places[word] = len(places)
                rows.append(row[None])
            found.append(places[word])
        made = np.concatenate(rows)
        for place, row in replaced:
            made[place] = row
        self._set(list(places), made)
        return found

    def add_vector(self, key: Key, vector: Any) -> int:
        """Adds a word with its vector, and returns its row."""
        return self.add_vectors([key], [vector])[0]

    def _set(self, words: list[str], vectors: Vector) -> None:
        self._file = self._ready = None
        self._index_to_key, self._vectors = words, vectors
        self._key_to_index = {word: row for row, word in enumerate(words)}

    def has_index_for(self, key: str) -> bool:
        """Whether there is the word."""
        return key in self

    def _find(self, word: str) -> int | None:
        """The row of a word."""
        if self._key_to_index is not None:
            return self._key_to_index.get(word)
        return self._native.find(word)

    def get_index(self, key: Key, default: int | None = None) -> int:
        """The row of a word."""
        if isinstance(key, (int, np.integer)):
            return int(key)
        row = self._find(key)
        row = default if row is None else row
        if row is None:
            raise KeyError(f"Key '{key}' not present")
        return row

    def get_vector(self, key: Key, norm: bool = False) -> Vector:
        """The vector of a word, or of a row; at length 1 if ``norm``."""
        vector = self._vector(key)
        if vector is None:
            raise KeyError(f"Key '{key}' not present")
        return vector / np.linalg.norm(vector) if norm else vector

    word_vec = get_vector

    def _vector(self, key: Key) -> Vector | None:
        if isinstance(key, (int, np.integer)):
            if not -len(self) <= key < len(self):
                return None
            key = self.index_to_key[int(key)]
        # After words were added: those first, then what can be made of parts.
        if self._file is None and key in self.key_to_index:
            row: Vector = self.vectors[self.key_to_index[key]]
            return row
        found = None if self._parts is None else self._parts.lookup(key)
        return None if found is None else array_of("f32", [self.vector_size], found[1])

    def get_normed_vectors(self) -> Vector:
        """All vectors at length 1."""
        lengths = np.linalg.norm(self.vectors, axis=1, keepdims=True)
        return np.asarray(self.vectors / np.maximum(lengths, np.float32(1e-30)), np.float32)

    def vectors_for_all(self, keys: Iterable[Key], allow_inference: bool = True) -> Self:
        """A store of some words. Those that the file lacks are made of their parts if ``allow_inference``; words
        without a vector are left out."""
        made = type(self)(self.vector_size)
        words = [key if isinstance(key, str) else self.index_to_key[key] for key in dict.fromkeys(keys)]
        found = [
            (word, vector)
            for word in words
            if (allow_inference or word in self) and (vector := self._vector(word)) is not None
        ]
        if found:
            made._set([word for word, _ in found], np.vstack([vector for _, vector in found]))
        return made


def _again(
    kind: type[WordStore], size: int, source: tuple[str, str | None] | None, added: tuple[list[str], Vector] | None
) -> WordStore:
    made = kind(size) if source is None else kind._of(*source)
    if added is not None:
        made._set(*added)
    return made


def _size(file: _native.File, name: str) -> int:
    size = 1
    for dim in file.describe(name)[2]:
        size *= dim
    return size
