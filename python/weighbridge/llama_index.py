"""For LlamaIndex: ``WeighbridgeEmbedding(model="model.mcf")`` is one of its ``BaseEmbedding``."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from pydantic import PrivateAttr

from ._texts import Encoder


class WeighbridgeEmbedding(BaseEmbedding):
    """Vectors of a model that `Encoder` opens."""

    _encoder: Encoder = PrivateAttr()

    def __init__(self, model: str, compute: Any = "f32", threads: int | None = None, **others: Any) -> None:
        super().__init__(model_name=model, **others)
        self._encoder = Encoder(model, compute, threads)

    @classmethod
    def class_name(cls) -> str:
        """The name that LlamaIndex stores."""
        return "WeighbridgeEmbedding"

    def _get_query_embedding(self, query: str) -> list[float]:
        found: list[float] = self._encoder.encode_query(query).tolist()
        return found

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        found: list[list[float]] = self._encoder.encode_document(texts).tolist()
        return found
