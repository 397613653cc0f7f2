"""Texts to vectors, with the names of sentence-transformers."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from . import _native
from ._dtypes import array_of
from ._errors import Error, FormatError, InferenceError, NotFound, RefusedError, TokenizerError, UnsupportedError
from ._progress import bar

Vectors = NDArray[Any]
Precision = Literal["float32", "int8", "uint8", "binary", "ubinary"]


def check_process(opened_in: int) -> None:
    """The threads of a model are not there in a process that was forked."""
    if os.getpid() != opened_in:
        message = "the model was opened in another process, whose threads a fork does not have"
        raise InferenceError(message, hint="open it in this process, or start processes by spawn")


class Encoder:
    """A model that turns texts into vectors.

    Args:
        model: a file or directory, or the name of a model in one of the caches
        compute: ``f32``, ``bf16`` or ``q8``; q8 rounds weights and activations and is the fastest
        threads: how many; None: all cores

    It can be used by several threads at once. Code that uses ``SentenceTransformer`` runs with this class in
    its place, as far as embedding goes.
    """

    def __init__(
        self,
        model: str | os.PathLike[str],
        compute: Literal["f32", "bf16", "q8"] = "f32",
        threads: int | None = None,
    ) -> None:
        self._model = os.fspath(model)
        self._settings = (self._model, compute, threads)
        # A negative number is refused as 0 is.
        self._native = _native.Encoder(self._model, compute, None if threads is None else max(threads, 0))
        self._process = os.getpid()

    def __repr__(self) -> str:
        return f"weighbridge.Encoder({self._model!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process opens the model itself.
        return type(self), self._settings

    @property
    def max_seq_length(self) -> int:
        """The most tokens of a text; longer ones are cut off."""
        return self._native.max_tokens

    @property
    def prompts(self) -> dict[str, str]:
        """What stands in front of texts of some kind, by name."""
        return dict(self._native.prompts)

    @property
    def default_prompt_name(self) -> str | None:
        """The name of the prompt that is used where none is asked for."""
        return self._native.default_prompt

    def get_sentence_embedding_dimension(self) -> int:
        """How many values a vector has."""
        return self._native.dimensions

    get_embedding_dimension = get_sentence_embedding_dimension

    def encode(
        self,
        inputs: str | Iterable[str],
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        output_value: Literal["sentence_embedding"] | None = "sentence_embedding",
        precision: Precision = "float32",
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        device: str | None = None,
        normalize_embeddings: bool | None = None,
        truncate_dim: int | None = None,
    ) -> Any:
        """The vectors of texts: of one text one vector, of a list a matrix.

        Args:
            inputs: a text, or a list of them
            prompt_name: the name of one of the model's prompts
            prompt: a text to put in front of each; it goes before ``prompt_name``
            batch_size: not used: texts are batched by their lengths
            show_progress_bar: with tqdm; None: only where logging shows information
            output_value: only ``sentence_embedding``
            precision: ``float32``; others take a sample of one's own, see `quantize_embeddings`
            convert_to_numpy: False gives a list of vectors
            convert_to_tensor: a tensor of torch
            device: where that shall be
            normalize_embeddings: True scales vectors to length 1; None: as the model says
            truncate_dim: how many of a vector's first values to keep
        """
        return self._encode(
            None,
            inputs,
            prompt_name,
            prompt,
            batch_size,
            show_progress_bar,
            output_value,
            precision,
            convert_to_numpy,
            convert_to_tensor,
            device,
            normalize_embeddings,
            truncate_dim,
        )

    def encode_query(
        self, inputs: str | Iterable[str], prompt_name: str | None = None, prompt: str | None = None, **others: Any
    ) -> Any:
        """The vectors of what is asked for: with the prompt ``query``, if the model has one. Other arguments are
        those of `encode`."""
        return self._encode("query", inputs, prompt_name, prompt, **others)

    def encode_document(
        self, inputs: str | Iterable[str], prompt_name: str | None = None, prompt: str | None = None, **others: Any
    ) -> Any:
        """The vectors of what is searched: with the prompt ``document``, ``passage`` or ``corpus``, if the
        model has one. Other arguments are those of `encode`."""
        return self._encode("document", inputs, prompt_name, prompt, **others)

    def _prompt(self, name: str | None, prompt: str | None) -> str | None:
        if prompt is None and name is not None:
            prompts = self.prompts
            if name not in prompts:
                known = ", ".join(prompts) or "it has none"
                raise ValueError(f"the model has no prompt {name!r}: {known}")
            return prompts[name]
        return prompt

    def _encode(
        self,
        purpose: str | None,
        inputs: str | Iterable[str],
        prompt_name: str | None,
        prompt: str | None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        output_value: str | None = "sentence_embedding",
        precision: Precision = "float32",
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        device: str | None = None,
        normalize_embeddings: bool | None = None,
        truncate_dim: int | None = None,
    ) -> Any:
        if output_value != "sentence_embedding":
            raise UnsupportedError(f"output_value {output_value!r} is not supported", field="output_value")
        prompt = self._prompt(prompt_name, prompt)
        check_process(self._process)
        single, texts = isinstance(inputs, str), _texts(inputs)
        with bar(show_progress_bar) as tell:
            buffer = self._native.embed(texts, prompt, purpose, tell)
        dim = self._native.dimensions
        vectors = array_of("f32", [len(texts), dim], buffer)
        if truncate_dim is not None and truncate_dim < dim:
            vectors = vectors[:, :truncate_dim]
        if normalize_embeddings:
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
            vectors = vectors / np.maximum(lengths, np.float32(1e-12))
        if precision != "float32":
            vectors = quantize_embeddings(vectors, precision)
        # Nobody expects a result that can't be changed.
        vectors = vectors if vectors.flags.writeable else vectors.copy()
        if convert_to_tensor:
            import torch

            made = torch.from_numpy(vectors)
            made = made if device is None else made.to(device)
            return made[0] if single else made
        if single:
            return vectors[0]
        return vectors if convert_to_numpy else list(vectors)

    def similarity(self, first: Any, second: Any) -> Vectors:
        """The cosine of each vector of the first with each of the second."""
        sides = [np.atleast_2d(np.asarray(side, np.float32)) for side in (first, second)]
        a, b = (side / np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-12) for side in sides)
        found: Vectors = a @ b.T
        return found

    def similarity_pairwise(self, first: Any, second: Any) -> Vectors:
        """The cosine of each vector of the first with the one at the same place in the second."""
        a, b = (np.atleast_2d(np.asarray(side, np.float32)) for side in (first, second))
        lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
        found: Vectors = (a * b).sum(1) / np.maximum(lengths, 1e-12)
        return found

    def tokenize(self, texts: str | Iterable[str]) -> dict[str, NDArray[np.int64]]:
        """The numbers of each text's tokens, the marks at both ends included: matrices with a row for each text.

        Short texts are filled up with zeros in ``input_ids``; ``attention_mask`` is 1 where there is a token.
        """
        rows = self._native.tokenize(_texts(texts))
        width = max(map(len, rows), default=0)
        ids, mask = np.zeros((2, len(rows), width), np.int64)
        for row, tokens in enumerate(rows):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        return {"input_ids": ids, "attention_mask": mask}


def _texts(inputs: Any) -> list[str]:
    """A list of texts out of one, of a list, an array or anything that gives them."""
    if isinstance(inputs, str):
        return [inputs]
    texts = list(inputs)
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"a text is needed, not {type(text).__name__} (number {number})")
    # numpy's texts are a class of their own.
    return [str(text) for text in texts]


def quantize_embeddings(
    embeddings: Vectors,
    precision: Precision,
    ranges: Vectors | None = None,
    calibration_embeddings: Vectors | None = None,
) -> Vectors:
    """Vectors in fewer bits, as sentence-transformers makes them.

    Args:
        embeddings: a matrix of floats
        precision: ``int8`` or ``uint8``, computed in f32: 256 steps between the smallest and the largest value of each
            column; ``binary`` or ``ubinary``: a bit a value, eight to a byte
        ranges: the two ends of each column, a matrix of two rows
        calibration_embeddings: vectors that the ranges are taken from, else the vectors themselves
    """
    vectors = np.asarray(embeddings)
    if precision == "float32":
        return vectors.astype(np.float32)
    if precision not in ("int8", "uint8", "binary", "ubinary"):
        raise ValueError(f"precision {precision!r} is not known")
    ends = None
    if precision in ("int8", "uint8"):
        known = vectors if calibration_embeddings is None else np.asarray(calibration_embeddings)
        if ranges is None and (known.ndim < 2 or len(known) == 1):
            message = f"one vector does not say between which ends its values lie, which {precision} needs"
            raise RefusedError(message, hint="give ranges or calibration_embeddings to quantize_embeddings")
        if ranges is None and len(known):
            ranges = np.vstack((known.min(axis=0), known.max(axis=0)))
        if ranges is not None:
            low, high = np.asarray(ranges, np.float32)
            ends = (low.tolist(), high.tolist())
    floats = np.ascontiguousarray(vectors, "<f4")
    codes = _native.quantize_vectors(floats.tobytes(), floats.shape[-1], precision, ends)
    width = floats.shape[-1] if precision.endswith("int8") else -(-floats.shape[-1] // 8)
    kind = "i1" if precision in ("int8", "binary") else "u1"
    # Nobody expects a result that can't be changed.
    return np.frombuffer(memoryview(codes), kind).reshape(*floats.shape[:-1], width).copy()


class Embedder:
    """A model in a file, and nothing to set: ``Embedder(path).embed(text)``.

    It raises `FileNotFound`, `FormatError`, `TokenizerError` and `InferenceError`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            self._encoder = Encoder(path)
        except NotFound:
            raise
        except Error as error:
            if error.field in ("tokenizer.json", "vocab.txt") or _native.lacks_tokenizer(os.fspath(path)):
                raise TokenizerError(error.message, **error.facts()) from error
            if isinstance(error, FormatError):
                raise
            raise FormatError(error.message, **error.facts()) from error

    @property
    def dim(self) -> int:
        """How many values a vector has."""
        return self._encoder.get_sentence_embedding_dimension()

    def embed(self, text: str) -> Vectors:
        """The vector of a text."""
        return self.embed_batch([text])[0]  # type: ignore[no-any-return]

    def embed_batch(self, texts: Iterable[str]) -> Vectors:
        """The vectors of texts: a matrix with a row for each."""
        try:
            found: Vectors = self._encoder.encode(list(texts))
        except InferenceError:
            raise
        except Error as error:
            raise InferenceError(error.message, **error.facts()) from error
        return found
