"""For LangChain: ``WeighbridgeEmbeddings(model="model.mcf")`` is one of its ``Embeddings``."""

from __future__ import annotations

from typing import Any

from langchain_core.embeddings import Embeddings

from ._texts import Encoder


class WeighbridgeEmbeddings(Embeddings):
    """Vectors of a model that `Encoder` opens; other arguments go there."""

    def __init__(self, model: str, **settings: Any) -> None:
        self.encoder = Encoder(model, **settings)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The vectors of what is searched."""
        found: list[list[float]] = self.encoder.encode_document(texts).tolist()
        return found

    def embed_query(self, text: str) -> list[float]:
        """The vector of what is asked for."""
        found: list[float] = self.encoder.encode_query(text).tolist()
        return found
