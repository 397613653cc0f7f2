"""For Haystack: components that embed documents and questions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict

from ._texts import Encoder


class _Embedder:
    def __init__(self, model: str, compute: Any = "f32", threads: int | None = None) -> None:
        self.settings = {"model": model, "compute": compute, "threads": threads}
        self.encoder: Encoder | None = None

    def warm_up(self) -> None:
        """Opens the model."""
        if self.encoder is None:
            self.encoder = Encoder(**self.settings)

    def to_dict(self) -> dict[str, Any]:
        """What pipelines store."""
        stored: dict[str, Any] = default_to_dict(self, **self.settings)
        return stored

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Any:
        """A component out of what a pipeline stored."""
        return default_from_dict(cls, data)

    def _encoder(self) -> Encoder:
        self.warm_up()
        assert self.encoder is not None
        return self.encoder


@component
class WeighbridgeTextEmbedder(_Embedder):
    """The vector of a question."""

    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, list[float]]:
        """``{"embedding": vector}``"""
        return {"embedding": self._encoder().encode_query(text).tolist()}


@component
class WeighbridgeDocumentEmbedder(_Embedder):
    """Documents with their vectors."""

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """``{"documents": documents with vectors}``"""
        vectors = self._encoder().encode_document([document.content or "" for document in documents])
        pairs = zip(documents, vectors.tolist(), strict=True)
        return {"documents": [replace(document, embedding=vector) for document, vector in pairs]}
