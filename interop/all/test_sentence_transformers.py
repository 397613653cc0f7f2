"""Code of sentence-transformers with the class exchanged: the same calls, the same results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer, util
from sentence_transformers.util.quantization import quantize_embeddings

import weighbridge

TEXTS = [
    "A weighbridge weighs lorries.",
    "Cats sleep all day.",
    "How heavy is that truck?",
    "Trains are late, because of snow: again!",
    "x",
    "Long texts are cut off after some tokens. " * 60,
]

Both = tuple[SentenceTransformer, weighbridge.Encoder]


@pytest.fixture(scope="module")
def both(prompted: Path) -> Both:
    return SentenceTransformer(str(prompted), device="cpu"), weighbridge.Encoder(str(prompted))


@pytest.mark.parametrize(
    "named",
    [
        {},
        {"prompt_name": "query"},
        {"prompt": "some words: "},
        {"prompt": "some words: ", "prompt_name": "query"},
        {"batch_size": 2, "show_progress_bar": False},
        {"show_progress_bar": True},
        {"normalize_embeddings": True, "truncate_dim": 100},
        {"truncate_dim": 64},
        {"convert_to_numpy": True, "convert_to_tensor": False, "output_value": "sentence_embedding", "device": "cpu"},
        {"convert_to_tensor": True},
        {"convert_to_tensor": True, "device": "cpu", "truncate_dim": 8},

        {"convert_to_numpy": False},
        {"precision": "float32"},
    ],
    ids=str,
)
def test_every_argument(both: Both, named: dict[str, Any]) -> None:
    for inputs in (TEXTS, TEXTS[0], [TEXTS[1]], tuple(TEXTS), np.array(TEXTS)):
        theirs, ours = (model.encode(inputs, **named) for model in both)
        assert_same(theirs, ours)
    for name in ("encode_query", "encode_document"):
        theirs, ours = (getattr(model, name)(TEXTS, **named) for model in both)
        assert_same(theirs, ours)


def assert_same(theirs: Any, ours: Any) -> None:
    if isinstance(theirs, list):
        assert isinstance(ours, list) and len(ours) == len(theirs)
        theirs, ours = torch.stack(theirs), np.stack(ours)
    # Of `convert_to_numpy=False` alone they give tensors, we arrays: torch may not be there.
    assert type(theirs) is type(ours) or (isinstance(theirs, torch.Tensor) and isinstance(ours, np.ndarray))
    theirs, ours = np.asarray(theirs), np.asarray(ours)
    assert theirs.shape == ours.shape and theirs.dtype == ours.dtype
    assert np.abs(theirs.astype(np.float64) - ours).max() < 2e-6


@pytest.mark.parametrize("precision", ["int8", "uint8", "binary", "ubinary"])
def test_fewer_bits(both: Both, precision: str) -> None:
    vectors = both[0].encode(TEXTS, truncate_dim=380)
    assert np.array_equal(quantize_embeddings(vectors, precision), weighbridge.quantize_embeddings(vectors, precision))
    theirs, ours = (model.encode(TEXTS, precision=precision) for model in both)
    assert theirs.shape == ours.shape and theirs.dtype == ours.dtype
    # The vectors differ in their last bits, so that a code may lie on the other side of an edge.
    assert (theirs != ours).mean() < 0.03
    if precision.endswith("int8"):
        assert np.abs(theirs.astype(int) - ours.astype(int)).max() <= 1
        for model in both:
            with pytest.raises(ValueError):
                model.encode(TEXTS[0], precision=precision)


def test_similarity_and_the_rest(both: Both) -> None:
    theirs, ours = both
    vectors = theirs.encode(TEXTS)
    for name in ("similarity", "similarity_pairwise"):
        a, b = getattr(theirs, name)(vectors, vectors[::-1].copy()), getattr(ours, name)(vectors, vectors[::-1].copy())
        assert np.allclose(np.asarray(a), np.asarray(b), atol=1e-6) and tuple(a.shape) == tuple(b.shape)
    assert ours.get_sentence_embedding_dimension() == theirs.get_sentence_embedding_dimension() == 384
    assert ours.max_seq_length == theirs.max_seq_length
    assert ours.prompts == theirs.prompts and ours.default_prompt_name == theirs.default_prompt_name
    theirs_hits = util.semantic_search(torch.tensor(vectors[:2]), torch.tensor(vectors), top_k=3)
    ours_hits = weighbridge.semantic_search(torch.tensor(vectors[:2]), torch.tensor(vectors), top_k=3)
    for a, b in zip(theirs_hits, ours_hits, strict=True):
        assert [hit["corpus_id"] for hit in a] == [hit["corpus_id"] for hit in b]
        assert np.allclose([hit["score"] for hit in a], [hit["score"] for hit in b], atol=1e-6)


def test_tokenize(both: Both) -> None:
    texts = TEXTS[:5]
    theirs, ours = both[0].tokenize(texts), both[1].tokenize(texts)
    kept = [row[mask.bool()].tolist() for row, mask in zip(theirs["input_ids"], theirs["attention_mask"], strict=True)]
    assert kept == [[int(i) for i, m in zip(row, mask, strict=True) if m] for row, mask in zip(ours["input_ids"], ours["attention_mask"], strict=True)]
    assert np.array_equal(np.asarray(theirs["input_ids"]), np.asarray(ours["input_ids"]))
    assert np.array_equal(np.asarray(theirs["attention_mask"]), np.asarray(ours["attention_mask"]))
