"""Pairs of texts to scores, beside what sentence-transformers gives."""

import contextlib
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


def test_progress_is_told_and_changes_nothing(folder, monkeypatch):
    told = []

    @contextlib.contextmanager
    def heard(wanted):
        yield (lambda *what: told.append(what)) if wanted else None

    monkeypatch.setattr("weighbridge._pairs.bar", heard)
    pairs = json.loads((folder / "pairs.json").read_text())["pairs"] * 60
    model = weighbridge.CrossEncoder(folder)
    shown = model.predict(pairs, show_progress_bar=True)
    assert np.array_equal(shown, model.predict(pairs, show_progress_bar=False)) and shown.flags.writeable
    assert told[0] == ("scoring", 0, len(pairs)) and told[-1] == ("scoring", len(pairs), len(pairs))
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)
    ranked = model.rank("a", ["b", "c"], batch_size=2, show_progress_bar=False)
    assert [hit["score"] for hit in ranked] == [hit["score"] for hit in model.rank("a", ["b", "c"])]


def test_whoever_hears_of_it_can_end_the_work(folder, monkeypatch):
    @contextlib.contextmanager
    def impatient(wanted):
        def tell(stage, done, total):
            raise KeyboardInterrupt

        yield tell if wanted else None

    monkeypatch.setattr("weighbridge._pairs.bar", impatient)
    model = weighbridge.CrossEncoder(folder)
    with pytest.raises(KeyboardInterrupt):
        model.predict([("a", "b")] * 100, show_progress_bar=True)
    assert model.predict(("a", "b"), show_progress_bar=False).shape == ()


def test_a_model_for_vectors_has_no_scores():
    with pytest.raises(weighbridge.UnsupportedError, match="no classifier"):
        weighbridge.CrossEncoder(family("mpnet"))
