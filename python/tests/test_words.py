"""Words, against gensim."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import gensim.models
import numpy as np
import pytest

import weighbridge


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[gensim.models.KeyedVectors, weighbridge.KeyedVectors]:
    words = [f"w{i}" for i in range(500)]
    theirs = gensim.models.KeyedVectors(32)
    theirs.add_vectors(words, np.random.default_rng(1).normal(size=(500, 32)).astype(np.float32))
    path = tmp_path_factory.mktemp("words") / "words.bin"
    theirs.save_word2vec_format(str(path), binary=True)
    return theirs, weighbridge.KeyedVectors.load(path)


def close(a: list[tuple[str, float]], b: list[tuple[str, float]]) -> bool:
    return [x for x, _ in a] == [x for x, _ in b] and np.allclose([x for _, x in a], [x for _, x in b], atol=1e-5)


def test_it_answers_as_gensim_does(both: tuple) -> None:
    theirs, ours = both
    assert ours.index_to_key == theirs.index_to_key and ours.key_to_index == theirs.key_to_index
    assert np.array_equal(ours.vectors, theirs.vectors) and np.array_equal(ours["w3"], theirs["w3"])
    assert np.array_equal(ours[["w3", "w4"]], theirs[["w3", "w4"]])
    assert "w3" in ours and "absent" not in ours and len(ours) == len(theirs)
    questions = [
        {"positive": "w1"},
        {"positive": ["w1", "w2"], "negative": ["w3"]},
        {"positive": ["w1"], "restrict_vocab": 50},
        {"positive": [("w1", 0.5), "w2"], "topn": 3},
        {"positive": [theirs["w5"]], "topn": 4},
        {"positive": ["w400"], "clip_start": 100, "clip_end": 300},
    ]
    for question in questions:
        assert close(ours.most_similar(**question), theirs.most_similar(**question)), question
    assert close(ours.similar_by_vector(theirs["w9"]), theirs.similar_by_vector(theirs["w9"]))
    assert close(ours.similar_by_word("w9", 5), theirs.similar_by_word("w9", 5))
    assert np.isclose(ours.similarity("w1", "w2"), theirs.similarity("w1", "w2"), atol=1e-6)
    assert np.isclose(ours.n_similarity(["w1", "w2"], ["w3"]), theirs.n_similarity(["w1", "w2"], ["w3"]), atol=1e-6)
    assert np.isclose(ours.distance("w1", "w2"), theirs.distance("w1", "w2"), atol=1e-6)
    assert np.allclose(ours.distances("w1"), theirs.distances("w1"), atol=1e-5)
    assert ours.doesnt_match(["w1", "w2", "w3", "w4"]) == theirs.doesnt_match(["w1", "w2", "w3", "w4"])
    assert ours.closer_than("w1", "w2") == theirs.closer_than("w1", "w2") and ours.rank("w1", "w2") == theirs.rank("w1", "w2")
    assert np.allclose(ours.most_similar("w1", topn=None), theirs.most_similar("w1", topn=None), atol=1e-5)
    for bad in (ours, theirs):
        with pytest.raises(KeyError):
            bad.most_similar("absent")
        with pytest.raises(KeyError):
            bad["absent"]


def test_analogies_are_evaluated_as_gensim_does(both: tuple, tmp_path: Path) -> None:
    theirs, ours = both
    questions = tmp_path / "questions.txt"
    lines = [": one"] + [f"w{i} w{i + 1} w{i + 2} {theirs.most_similar(positive=[f'w{i+2}', f'w{i+1}'], negative=[f'w{i}'])[0][0] if i % 2 else 'w9'}" for i in range(10, 30)]
    lines += [": two", "w1 w2 w3 absent", "w1 w2 w3 w4"]
    questions.write_text("\n".join(lines) + "\n")
    (share, sections), (right, expected) = (which.evaluate_word_analogies(str(questions)) for which in both[::-1])
    assert share == right
    assert [(s["section"], s["correct"], s["incorrect"]) for s in sections] == [
        (s["section"], s["correct"], s["incorrect"]) for s in expected
    ]


def test_unknown_words_are_made_of_parts(tmp_path: Path) -> None:
    sentences = [["a", "weighbridge", "weighs", "lorries"], ["lorries", "are", "heavy"]] * 20
    model = gensim.models.FastText(sentences, vector_size=16, min_count=1, epochs=1, bucket=1000, seed=1, workers=1)
    path = tmp_path / "model.bin"
    gensim.models.fasttext.save_facebook_model(model, str(path))
    ours = weighbridge.KeyedVectors.load(path)
    assert "weighbridges" not in ours
    assert np.allclose(ours["weighbridges"], model.wv["weighbridges"], atol=1e-6)
    assert np.allclose(ours["lorries"], model.wv["lorries"], atol=1e-6)


def test_words_are_added_and_written(tmp_path: Path) -> None:
    rows = np.random.default_rng(2).normal(size=(20, 8)).astype(np.float32)
    words = [f"n{i}" for i in range(20)]
    ours, theirs = weighbridge.KeyedVectors(8), gensim.models.KeyedVectors(8)
    for one in (ours, theirs):
        assert len(one) == 0 and one.vectors.dtype == np.float32
        one.add_vectors(words[:19], rows[:19])
        one[words[19]] = rows[19]
        one["n3"] = rows[4] * 2
    assert ours.index_to_key == words and np.array_equal(ours.vectors, theirs.vectors)
    assert close(ours.most_similar("n3", topn=4), theirs.most_similar("n3", topn=4))
    assert close(
        ours.most_similar_cosmul(["n1", "n2"], ["n3"], topn=4), theirs.most_similar_cosmul(["n1", "n2"], ["n3"], topn=4)
    )
    assert ours.most_similar_to_given("n1", ["n2", "n3"]) == theirs.most_similar_to_given("n1", ["n2", "n3"])
    for binary in (True, False):
        ours.save_word2vec_format(tmp_path / "ours", binary=binary)
        back = gensim.models.KeyedVectors.load_word2vec_format(str(tmp_path / "ours"), binary=binary)
        assert back.index_to_key == words and np.array_equal(back.vectors, ours.vectors)
        theirs.save_word2vec_format(str(tmp_path / "theirs"), binary=binary)
        back = weighbridge.KeyedVectors.load_word2vec_format(tmp_path / "theirs", binary=binary, limit=5)
        assert back.index_to_key == words[:5] and np.allclose(back.vectors, ours.vectors[:5])
    # finalfusion gives vectors at length 1.
    ours.save(tmp_path / "a.fifu")
    assert np.allclose(weighbridge.KeyedVectors.load(tmp_path / "a.fifu")["n7"], rows[7] / np.linalg.norm(rows[7]), atol=1e-6)
    ours.save(tmp_path / "a.safetensors")
    assert np.array_equal(weighbridge.KeyedVectors.load(tmp_path / "a.safetensors").vectors, ours.vectors)
    some = ours.vectors_for_all(["n5", "absent", "n6", "n5"])
    assert some.index_to_key == ["n5", "n6"] and np.array_equal(some["n6"], rows[6])
    with pytest.raises(TypeError):
        ours.add_vectors([3], rows[:1])
    with pytest.raises(ValueError):
        ours.add_vectors(["a", "b"], rows[:1])
    with pytest.raises(ValueError):
        weighbridge.KeyedVectors.load_word2vec_format(tmp_path / "theirs", fvocab="counts")


def test_unknown_words_are_a_key_error_everywhere(both: tuple) -> None:
    _, ours = both
    calls = [
        lambda: ours["absent"], lambda: ours[["w1", "absent"]], lambda: ours.get_vector("absent"), lambda: ours.get_index("absent"),
        lambda: ours.most_similar(["w1", "absent"]), lambda: ours.most_similar("w1", "absent"), lambda: ours.similarity("w1", "absent"),
        lambda: ours.distance("absent", "w1"), lambda: ours.distances("absent"), lambda: ours.distances("w1", ["absent"]),
        lambda: ours.closer_than("w1", "absent"), lambda: ours.rank("absent", "w1"), lambda: ours.similar_by_word("absent"),
        lambda: ours.most_similar_cosmul("absent"), lambda: ours.most_similar_to_given("w1", ["absent"]), lambda: ours[500],
        lambda: weighbridge.KeyedVectors(3)["absent"], lambda: weighbridge.KeyedVectors(3).most_similar("absent"),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(KeyError):
            call()
    assert ours.doesnt_match(["w1", "absent", "w2", "w3"]) in ("w1", "w2", "w3")
    with pytest.raises(ValueError):
        ours.doesnt_match(["absent"])
    assert ours[[]].shape == (0, 32) and ours.get_index("absent", 7) == 7


def test_words_are_added_to_those_of_a_file_with_parts(tmp_path: Path) -> None:
    sentences = [["a", "weighbridge", "weighs", "lorries"], ["lorries", "are", "heavy"]] * 20
    model = gensim.models.FastText(sentences, vector_size=16, min_count=1, epochs=1, bucket=1000, seed=1, workers=1)
    gensim.models.fasttext.save_facebook_model(model, str(tmp_path / "model.bin"))
    ours = weighbridge.KeyedVectors.load(tmp_path / "model.bin")
    ours["crane"] = np.ones(16)
    assert ours.index_to_key[-1] == "crane" and ours["crane"].tolist() == [1] * 16
    assert np.allclose(ours["weighbridges"], model.wv["weighbridges"], atol=1e-6)
    assert np.allclose(ours["lorries"], model.wv["lorries"], atol=1e-6)
    assert "crane" in [word for word, _ in ours.similar_by_vector(np.ones(16), topn=1)]


def test_words_can_be_pickled(samples: Path) -> None:
    words = weighbridge.KeyedVectors.load(samples / "words.fifu")
    sent = pickle.dumps(words)
    # The file is opened again, with the parts of words that it has.
    assert len(sent) < 2000 and pickle.loads(sent).most_similar("truck") == words.most_similar("truck")
    words.add_vector("weighbridge", np.ones(words.vector_size))
    own = weighbridge.KeyedVectors(2)
    own.add_vectors(["north", "east"], np.eye(2))
    for some in (words, own):
        for again in (pickle.loads(pickle.dumps(some)), copy.deepcopy(some)):
            assert again.index_to_key == some.index_to_key and np.array_equal(again.vectors, some.vectors)
    with pytest.raises(weighbridge.RefusedError, match="format= takes one of"):
        own.save(samples / "own.unknown")
