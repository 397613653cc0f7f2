"""Texts to vectors."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import weighbridge

TEXTS = ["A weighbridge weighs lorries.", "Cats sleep all day.", "", "How heavy is that truck?" * 20]


@pytest.fixture(scope="module")
def encoder(minilm: Path) -> weighbridge.Encoder:
    return weighbridge.Encoder(minilm)


def test_vectors_are_those_of_the_reference(encoder: weighbridge.Encoder) -> None:
    root = Path(os.environ.get("WEIGHBRIDGE_REFERENCE", Path(os.environ["WEIGHBRIDGE_ROOT"]).parent / "shared/reference"))
    texts, vectors = root / "minilm/texts.json", root / "minilm/vectors.npy"
    if not (texts.exists() and vectors.exists()):
        pytest.skip("the reference vectors are not there")
    made = encoder.encode(json.loads(texts.read_text()))
    assert np.abs(made - np.load(vectors)).max() < 1e-5


def test_one_text_is_a_vector_and_several_a_matrix(encoder: weighbridge.Encoder) -> None:
    dim = encoder.get_sentence_embedding_dimension()
    assert dim == 384
    matrix = encoder.encode(TEXTS)
    assert matrix.shape == (len(TEXTS), dim) and matrix.dtype == np.float32 and matrix.flags.writeable
    assert np.array_equal(encoder.encode(TEXTS[0]), matrix[0])
    assert encoder.encode([]).shape == (0, dim)
    assert isinstance(encoder.encode(TEXTS, convert_to_numpy=False), list)
    assert np.allclose(np.linalg.norm(matrix, axis=1), 1, atol=1e-5)
    assert encoder.encode(TEXTS, truncate_dim=10).shape == (len(TEXTS), 10)
    short = encoder.encode(TEXTS, truncate_dim=10, normalize_embeddings=True)
    assert np.allclose(np.linalg.norm(short, axis=1), 1, atol=1e-5)
    assert np.allclose(encoder.similarity(matrix, matrix).diagonal(), 1, atol=1e-5)
    assert encoder.encode(TEXTS, precision="int8").dtype == np.int8
    assert encoder.encode(TEXTS, precision="ubinary").shape == (len(TEXTS), dim // 8)
    with pytest.raises(ValueError):
        encoder.encode(TEXTS, prompt_name="absent")
    assert np.array_equal(encoder.encode(TEXTS[0], prompt="x: "), encoder.encode("x: " + TEXTS[0]))


def test_tokens(encoder: weighbridge.Encoder) -> None:
    found = encoder.tokenize(["hello world", "hello"])
    assert found["input_ids"].tolist() == [[101, 7592, 2088, 102], [101, 7592, 102, 0]]
    assert found["attention_mask"].tolist() == [[1, 1, 1, 1], [1, 1, 1, 0]]
    assert encoder.tokenize("hello")["input_ids"].tolist() == [[101, 7592, 102]]
    assert encoder.tokenize([])["input_ids"].shape == (0, 0)


def test_rounded_weights_give_nearly_the_same(minilm: Path, encoder: weighbridge.Encoder) -> None:
    rounded = weighbridge.Encoder(minilm, compute="q8", threads=1).encode(TEXTS)
    assert (rounded * encoder.encode(TEXTS)).sum(1).min() > 0.999


def test_many_threads_share_one_model(encoder: weighbridge.Encoder) -> None:
    expected, failed = encoder.encode(TEXTS), []

    def work() -> None:
        for _ in range(5):
            if not np.array_equal(encoder.encode(TEXTS), expected):
                failed.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failed


def in_a_fork(encoder: weighbridge.Encoder, path: Path, queue: multiprocessing.Queue) -> None:
    try:
        encoder.encode("x")
        queue.put("no error")
    except weighbridge.InferenceError as error:
        queue.put(str(error))
    queue.put(float(weighbridge.Encoder(path).encode("x")[0]))


def test_after_a_fork_it_says_so(minilm: Path, encoder: weighbridge.Encoder) -> None:
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=in_a_fork, args=(encoder, minilm, queue))
    process.start()
    said, value = queue.get(timeout=60), queue.get(timeout=60)
    process.join(60)
    assert "another process" in said and abs(value - float(encoder.encode("x")[0])) < 1e-6


def test_the_old_embedder(minilm: Path, tmp_path: Path) -> None:
    embedder = weighbridge.Embedder(minilm)
    assert embedder.embed("x").shape == (384,) and embedder.embed_batch(["x", "y"]).shape == (2, 384)
    with pytest.raises(weighbridge.FileNotFound):
        weighbridge.Embedder(tmp_path / "absent.weights")
    (tmp_path / "bad.weights").write_bytes(b"EMBD" + bytes(50))
    with pytest.raises(weighbridge.FormatError):
        weighbridge.Embedder(tmp_path / "bad.weights")


def test_the_old_embedder_tells_what_is_wrong(samples: Path, tmp_path: Path) -> None:
    def broken(change: Callable[[Path], object]) -> type[Exception]:
        folder = Path(tempfile.mkdtemp(dir=tmp_path)) / "model"
        shutil.copytree(samples / "hf-model", folder)
        change(folder)
        with pytest.raises(weighbridge.Error) as raised:
            weighbridge.Embedder(folder).embed("x")
        return raised.type

    assert broken(lambda folder: (folder / "tokenizer.json").write_text("{")) is weighbridge.TokenizerError
    odd = json.dumps({"model": {"type": "Odd", "vocab": {"a": 0}}})
    assert broken(lambda folder: (folder / "tokenizer.json").write_text(odd)) is weighbridge.TokenizerError
    assert broken(lambda folder: (folder / "vocab.txt").unlink()) is weighbridge.TokenizerError
    assert issubclass(broken(lambda folder: (folder / "model.safetensors").unlink()), weighbridge.FormatError)
    assert issubclass(broken(lambda folder: (folder / "model.safetensors").write_bytes(b"no")), weighbridge.FormatError)
    embedder = weighbridge.Embedder(samples / "hf-model")
    with pytest.raises(TypeError):
        embedder.embed_batch([3])


def test_odd_inputs(samples: Path) -> None:
    encoder = weighbridge.Encoder(samples / "hf-model")
    expected = encoder.encode(TEXTS)
    for inputs in (tuple(TEXTS), np.array(TEXTS), (text for text in TEXTS), dict.fromkeys(TEXTS), np.array(TEXTS, object)):
        assert np.array_equal(encoder.encode(inputs), expected)
    assert np.array_equal(encoder.encode(np.array(TEXTS)[0]), expected[0])
    assert encoder.encode([], precision="int8").shape == (0, expected.shape[1])
    assert encoder.encode(TEXTS, truncate_dim=10, precision="ubinary").shape == (len(TEXTS), 2)
    assert encoder.encode(TEXTS, truncate_dim=10_000).shape == expected.shape
    for wrong in (3, [3], [None], [b"bytes"], [["pair", "of texts"]]):
        with pytest.raises(TypeError):
            encoder.encode(wrong)
    for wrong in ({"precision": "int7"}, {"precision": "int8"}, {"output_value": "token_embeddings"}, {"prompt_name": "no"}):
        with pytest.raises((ValueError, weighbridge.UnsupportedError)):
            encoder.encode("x", **wrong)
    with pytest.raises(TypeError):
        encoder.encode_query("x", no_such_argument=1)
    for wrong in ({"compute": "f64"}, {"threads": 0}, {"threads": -1}):
        with pytest.raises(weighbridge.RefusedError):
            weighbridge.Encoder(samples / "hf-model", **wrong)
    again = pickle.loads(pickle.dumps(encoder))
    assert np.array_equal(again.encode(TEXTS), expected)


def test_ctrl_c_stops_long_work(encoder: weighbridge.Encoder) -> None:
    texts = [TEXTS[3]] * 20_000
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        encoder.encode(texts)
    assert encoder.encode("x").shape == (384,)


@pytest.mark.parametrize("dim", [1, 7, 8, 32, 383])
def test_fewer_bits_are_those_of_the_formulas(dim: int) -> None:
    """As quantize_embeddings of sentence-transformers 6.2 computes them."""
    rng = np.random.default_rng(dim)
    vectors = (rng.standard_normal((50, dim)) * 0.1).astype(np.float32)
    vectors[:, 0] = 0.25
    vectors[3] = 0
    others = (rng.standard_normal((20, dim)) * 0.05).astype(np.float32)
    ranges = np.vstack((vectors.min(axis=0), vectors.max(axis=0)))
    narrow = np.vstack((others.min(axis=0), others.max(axis=0)))
    given: list[tuple[np.ndarray, dict[str, np.ndarray]]] = [
        (ranges, {}),
        (narrow, {"ranges": narrow}),
        (narrow, {"calibration_embeddings": others}),
    ]
    for ends, named in given:
        steps = (ends[1] - ends[0]) / 255
        steps = np.where(steps == 0, 1, steps)
        codes = np.clip(np.floor((vectors - ends[0]) / steps), 0, 255)
        uint8 = weighbridge.quantize_embeddings(vectors, "uint8", **named)
        assert uint8.dtype == np.uint8 and np.array_equal(uint8, codes.astype(np.uint8))
        int8 = weighbridge.quantize_embeddings(vectors, "int8", **named)
        assert int8.dtype == np.int8 and np.array_equal(int8, (codes - 128).astype(np.int8))
    bits = np.packbits(vectors > 0, axis=-1)
    assert np.array_equal(weighbridge.quantize_embeddings(vectors, "ubinary"), bits)
    binary = weighbridge.quantize_embeddings(vectors, "binary")
    assert binary.dtype == np.int8 and np.array_equal(binary, (bits - 128).astype(np.int8))
    assert binary.flags.writeable
    assert np.array_equal(weighbridge.quantize_embeddings(vectors[5], "ubinary"), bits[5])
    assert np.array_equal(weighbridge.quantize_embeddings(vectors[::2, ::-1], "ubinary"), np.packbits(vectors[::2, ::-1] > 0, axis=-1))
    with pytest.raises(ValueError):
        weighbridge.quantize_embeddings(vectors, "int8", ranges=np.zeros((2, dim + 1), np.float32))
