"""The peers that are Python packages. Reads a request a line from standard input, answers each with a line
of JSON. Times are taken here, so that starting Python and passing text do not count."""

import json
import sys
import time

loaded = {}


def timed(work):
    start = time.perf_counter()
    made = work()
    return time.perf_counter() - start, made


def words_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read().split("\n")


def finalfusion_load(path):
    import finalfusion

    return finalfusion.load_finalfusion(path, mmap=True)


def gensim_load(path):
    from gensim.models import KeyedVectors

    return KeyedVectors.load(path, mmap="r")


LOAD = {"finalfusion": finalfusion_load, "gensim": gensim_load}


def save_gensim(binary, to):
    """The file that gensim itself maps."""
    from gensim.models import KeyedVectors

    KeyedVectors.load_word2vec_format(binary, binary=True).save(to)


def text_of_gensim(binary, text):
    """Seconds for writing as text, and for reading that."""
    from gensim.models import KeyedVectors

    if binary not in loaded:
        loaded[binary] = KeyedVectors.load_word2vec_format(binary, binary=True)
    writing, _ = timed(lambda: loaded[binary].save_word2vec_format(text, binary=False))
    reading, _ = timed(lambda: KeyedVectors.load_word2vec_format(text, binary=False))
    return writing, reading


def open_and_find(who, path, word):
    """Seconds for opening, and for opening and finding a word."""
    loaded.pop(who, None)
    opened, vectors = timed(lambda: LOAD[who](path))
    found, _ = timed(lambda: vectors[word])
    loaded[who] = vectors
    return opened, opened + found


def lookup(who, path):
    """Seconds a word, for all words of a list."""
    vectors, words = loaded[who], loaded.setdefault(path, None) or words_of(path)
    loaded[path] = words

    def work():
        for word in words:
            vectors[word]

    return timed(work)[0] / len(words)


def similar(who, word, k):
    """Seconds, and the words that were found."""
    vectors = loaded[who]
    if who == "gensim":
        seconds, hits = timed(lambda: vectors.most_similar(word, topn=int(k)))
        return seconds, [hit[0] for hit in hits]
    seconds, hits = timed(lambda: vectors.word_similarity(word, k=int(k)))
    return seconds, [hit.word for hit in hits]


def quantize(path, dim, parts, seed, rotate):
    """Seconds for training and for encoding, and the mean squared error of a row."""
    import faiss
    import numpy

    key = (path, dim)
    if key not in loaded:
        loaded[key] = numpy.fromfile(path, "<f4").reshape(-1, int(dim))
    rows = loaded[key]
    # This is what an index of OPQ and PQ does.
    matrix = faiss.OPQMatrix(int(dim), int(parts)) if rotate == "opq" else None
    quantizer = faiss.ProductQuantizer(int(dim), int(parts), 8)
    quantizer.cp.seed = int(seed)

    def train():
        if matrix is not None:
            matrix.train(rows)
        quantizer.train(matrix.apply(rows) if matrix is not None else rows)

    def encode():
        return quantizer.compute_codes(matrix.apply(rows) if matrix is not None else rows)

    training, _ = timed(train)
    encoding, codes = timed(encode)
    again = quantizer.decode(codes)
    if matrix is not None:
        again = matrix.reverse_transform(again)
    return training, encoding, float(((rows - again).astype("f8") ** 2).sum(1).mean())


KNOWN = {f.__name__: f for f in [save_gensim, text_of_gensim, open_and_find, lookup, similar, quantize]}

for line in sys.stdin:
    name, *arguments = line.rstrip("\n").split("\t")
    print(json.dumps(KNOWN[name](*arguments)), flush=True)
