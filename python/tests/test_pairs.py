"""Pairs of texts to scores, beside what sentence-transformers gives."""

import json

import numpy as np
import pytest
import weighbridge
from conftest import family


@pytest.fixture(params=["cross-encoder-bert", "cross-encoder-xlmr"])
def folder(request):
    return family(request.param)


def test_scores_are_those_of_the_library(folder):
    pairs = json.loads((folder / "pairs.json").read_text())["pairs"]
    wanted = np.load(folder / "scores.npy").reshape(-1)
    model = weighbridge.CrossEncoder(folder)
    scores = model.predict(pairs)
    assert scores.shape == (len(pairs),) and model.num_labels == 1
    assert np.abs(scores - wanted).max() <= 1e-5 * np.abs(wanted).max()
    one = model.predict(tuple(pairs[0]))
    assert one.shape == () and abs(one - wanted[0]) < 1e-5
    # With a prompt, or a text alone, there is no pair.
    for wrong in (["a"], [("a", "b", "c")], [("a", 1)], ["ab", "c", "d"]):
        with pytest.raises(weighbridge.RefusedError):
            model.predict(wrong)
    assert model.predict([]).shape == (0,)


def test_documents_are_ranked(folder):
    pairs = json.loads((folder / "pairs.json").read_text())["pairs"]
    question, documents = pairs[0][0], [text for _, text in pairs[:6]]
    model = weighbridge.CrossEncoder(folder, threads=1)
    hits = model.rank(question, documents, top_k=4, return_documents=True)
    scores = model.predict([(question, document) for document in documents])
    order = sorted(range(len(documents)), key=lambda row: -scores[row])
    assert [hit["corpus_id"] for hit in hits] == order[:4]
    assert all(hit["text"] == documents[hit["corpus_id"]] for hit in hits)


def test_a_model_for_vectors_has_no_scores():
    with pytest.raises(weighbridge.UnsupportedError, match="no classifier"):
        weighbridge.CrossEncoder(family("mpnet"))
