"""What the package `finalfusion` writes: every vocabulary and storage that it has."""

import numpy as np
from finalfusion import Embeddings
from finalfusion.metadata import Metadata
from finalfusion.norms import Norms
from finalfusion.storage import NdArray, QuantizedArray
from finalfusion.storage.quantized import PQ
from finalfusion.subword import ExplicitIndexer, FastTextIndexer, FinalfusionHashIndexer
from finalfusion.vocab import ExplicitVocab, FastTextVocab, FinalfusionBucketVocab, SimpleVocab

WORDS = ["grain", "grains", "a b", "Tübingen", "東京", "x", "weighbridge", "naïve", "line\nend"]
UNKNOWN = ["grainy", "rain", "Tübinger", "東京都", "weigh bridge", "y", "", "\U0001f69b", "ab"]
DIM = 12


def _explicit():
    """Some n-grams have one row together."""
    ngrams = ["<gr", "gra", "ain", "東京>", "rain", "bri", "<we"]
    index = dict(zip(ngrams, [0, 1, 0, 2, 1, 3, 4]))
    return ExplicitVocab(list(WORDS), ExplicitIndexer(ngrams, 3, 4, index))


VOCABULARIES = {
    "simple": lambda: SimpleVocab(list(WORDS)),
    "bucket": lambda: FinalfusionBucketVocab(list(WORDS), FinalfusionHashIndexer(5, 3, 6)),
    "short n-grams": lambda: FinalfusionBucketVocab(list(WORDS), FinalfusionHashIndexer(3, 1, 2)),
    "fasttext": lambda: FastTextVocab(list(WORDS), FastTextIndexer(29, 3, 6)),
    "explicit": _explicit,
    "bucket to explicit": lambda: VOCABULARIES["bucket"]().to_explicit(),
    "fasttext to explicit": lambda: VOCABULARIES["fasttext"]().to_explicit(),
}

METADATA = {
    "title": 'wörds "quoted"',
    "common": {"dims": DIM, "rate": 0.05, "fast": True, "deep": {"list": [1, 2, 3]}},
}


def matrix(rows, unit=0):
    """Irregular values; the first rows have unit length."""
    values = np.random.default_rng(rows).standard_normal((rows, DIM)).astype("f4")
    values[:unit] /= np.linalg.norm(values[:unit], axis=1, keepdims=True)
    return values


def plain(vocabulary, norms=False, metadata=False):
    vocab = VOCABULARIES[vocabulary]()
    storage = NdArray(matrix(vocab.upper_bound, len(WORDS) if norms else 0))
    lengths = Norms(np.linspace(0.25, 4, len(WORDS)).astype("f4")) if norms else None
    text = Metadata(METADATA) if metadata else None
    return Embeddings(storage, vocab, norms=lengths, metadata=text)


def quantized(vocabulary, projection=False, norms=False, centroids=16, parts=4):
    """Codes and centroids need not come from training to be a valid file."""
    vocab = VOCABULARIES[vocabulary]()
    rows, random = vocab.upper_bound, np.random.default_rng(7)
    books = random.standard_normal((parts, centroids, DIM // parts)).astype("f4")
    turned = np.linalg.qr(random.standard_normal((DIM, DIM)))[0].astype("f4")
    turned = np.ascontiguousarray(turned) if projection else None
    codes = random.integers(0, centroids, (rows, parts)).astype("u1")
    lengths = random.uniform(0.5, 2, rows).astype("f4") if norms else None
    return Embeddings(QuantizedArray(PQ(books, turned), codes, lengths), vocab)


def write(path, embeddings):
    embeddings.write(str(path))
    return path


def rows(embeddings):
    """All rows, those of subwords too."""
    storage = embeddings.storage
    return np.stack([np.asarray(storage[i]) for i in range(storage.shape[0])])
