"""For Chroma: ``WeighbridgeEmbeddingFunction(model="model.mcf")`` is one of its ``EmbeddingFunction``."""

from __future__ import annotations

from typing import Any

from chromadb.api.types import Documents, EmbeddingFunction, Embeddings
from chromadb.utils.embedding_functions import register_embedding_function

from ._texts import Encoder


@register_embedding_function
class WeighbridgeEmbeddingFunction(EmbeddingFunction[Documents]):
    """Vectors of a model that `Encoder` opens."""

    def __init__(self, model: str, compute: Any = "f32", threads: int | None = None) -> None:
        self.settings = {"model": model, "compute": compute, "threads": threads}
        self.encoder = Encoder(model, compute, threads)

    def __call__(self, input: Documents) -> Embeddings:
        """The vectors of what is searched."""
        return list(self.encoder.encode_document(input))

    def embed_query(self, input: Documents) -> Embeddings:
        """The vectors of what is asked for."""
        return list(self.encoder.encode_query(input))

    @staticmethod
    def name() -> str:
        """The name that Chroma stores."""
        return "weighbridge"

    def get_config(self) -> dict[str, Any]:
        """What Chroma stores of it."""
        return self.settings

    @staticmethod
    def build_from_config(config: dict[str, Any]) -> WeighbridgeEmbeddingFunction:
        """One out of what Chroma stored."""
        return WeighbridgeEmbeddingFunction(**config)
