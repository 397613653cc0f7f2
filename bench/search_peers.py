"""The peers of the section search, all in one process with one set of rows in memory:

    search_peers.py KIND ROWS DIM QUERIES THREADS

KIND is `f32`, `f16` or `int8`; ROWS a file of such rows without a header, or `.npy`; QUERIES a file of f32. Reads a
request a line from standard input, answers each with a line of JSON. Times are taken here, so that starting
Python and passing text do not count. Peers that compute with integers get queries rounded to 127 steps to either side; those in f16
get them in f16; all others get f32."""

import concurrent.futures
import json
import sys
import time

import faiss
import numkong
import numpy
import simsimd
import torch
from usearch.index import MetricKind
from usearch.index import search as usearch_exact

K = 10
# Rows that variants are tried on, and that scores are kept of at a time.
TRIAL = 65536
CHUNKS = [4096, 16384, TRIAL]
TYPES = {"f32": "<f4", "f16": "<f2", "int8": "i1"}
# Peers that take longer than this many times the fastest in the trial are not measured.
HOPELESS = 3
# For threads of OpenMP that wait for more work in a loop.
CALM = 0.01


class Rows:
    """The rows, or the first of them, in the forms that peers want."""

    def __init__(self, kind, values, threads):
        self.kind, self.values, self.threads = kind, values, threads
        self.tensor = torch.from_numpy(values)
        self.made = {}

    def once(self, name, make):
        if name not in self.made:
            self.made[name] = make()
        return self.made[name]

    def faiss(self):
        dim = self.values.shape[1]
        if self.kind == "f32":
            index = faiss.IndexFlatIP(dim)
        else:
            types = {"f16": "QT_fp16", "int8": "QT_8bit_direct_signed"}
            kind = getattr(faiss.ScalarQuantizer, types[self.kind])
            index = faiss.IndexScalarQuantizer(dim, kind, faiss.METRIC_INNER_PRODUCT)
            # There is nothing to learn, but it asks for it.
            index.train(self.values[:1000].astype("f4"))
        for start in range(0, len(self.values), TRIAL):
            index.add(self.values[start : start + TRIAL].astype("f4"))
        return index

    def packed(self):
        size = CHUNKS[1]
        starts = range(0, len(self.values), size)
        return [(start, numkong.dots_pack(self.values[start : start + size])) for start in starts]


def as_stored(kind, queries):
    """Queries in the type of the rows."""
    if kind == "int8":
        return numpy.rint(queries * (127 / abs(queries).max(1, keepdims=True))).astype("i1")
    return queries.astype(TYPES[kind])


def best_of_scores(scores, first=0):
    """Of a row of scores for each query, the best and where they are."""
    if scores.shape[1] <= K:
        places = numpy.tile(numpy.arange(scores.shape[1]), (len(scores), 1))
    else:
        places = numpy.argpartition(scores, -K, axis=1)[:, -K:]
    return numpy.take_along_axis(scores, places, 1), places + first


def merged(parts):
    scores, places = (numpy.concatenate(list(p), 1) for p in zip(*parts))
    order = numpy.argsort(-scores, axis=1, kind="stable")[:, :K]
    return numpy.take_along_axis(places, order, 1)


def in_pieces(rows, score):
    """Scores of pieces, one for each thread."""
    size = -(-len(rows.values) // rows.threads)
    pieces = [(s, min(s + size, len(rows.values))) for s in range(0, len(rows.values), size)]
    work = lambda piece: best_of_scores(score(*piece), piece[0])
    return merged(pool.map(work, pieces) if rows.threads > 1 else map(work, pieces))


def with_faiss(rows, queries):
    if rows.kind == "int8":
        # It drops what is behind the point.
        queries = as_stored(rows.kind, queries).astype("f4")
    return rows.once("faiss", rows.faiss).search(queries, K)[1]


def with_usearch(rows, queries):
    queries = as_stored(rows.kind, queries)
    found = usearch_exact(rows.values, queries, K, MetricKind.IP, exact=True, threads=rows.threads)
    return found.keys.reshape(len(queries), -1)


def with_simsimd(rows, queries):
    queries = as_stored(rows.kind, queries)
    found = simsimd.cdist(queries, rows.values, "dot", threads=rows.threads, out_dtype="float32")
    return merged([best_of_scores(numpy.asarray(found))])


def with_numkong(rows, queries):
    queries = as_stored(rows.kind, queries)
    return in_pieces(rows, lambda a, b: numpy.asarray(numkong.cdist(queries, rows.values[a:b], "dot")))


def with_numkong_packed(rows, queries):
    queries = as_stored(rows.kind, queries)
    pieces = rows.once("packed", rows.packed)
    work = lambda p: best_of_scores(numpy.asarray(numkong.dots_packed(queries, p[1])), p[0])
    return merged(pool.map(work, pieces) if rows.threads > 1 else map(work, pieces))


def with_numpy(rows, queries, chunk):
    parts = []
    for start in range(0, len(rows.values), chunk):
        part = rows.values[start : start + chunk]
        part = part if rows.kind == "f32" else part.astype("f4")
        parts.append(best_of_scores(queries @ part.T, start))
    return merged(parts)


def torch_chunks(rows, chunk, score):
    parts = []
    for start in range(0, len(rows.tensor), chunk):
        scores = score(rows.tensor[start : start + chunk])
        values, places = scores.topk(min(K, scores.shape[1]), dim=1)
        parts.append((values.numpy(), places.numpy() + start))
    return merged(parts)


def with_torch(rows, queries, chunk, rows_first):
    """In f32; rows of another type are widened piece by piece."""
    queries = torch.from_numpy(queries)

    def score(part):
        part = part if rows.kind == "f32" else part.float()
        return (part @ queries.T).T.contiguous() if rows_first else queries @ part.T

    return torch_chunks(rows, chunk, score)


def with_int_mm(rows, queries, chunk):
    queries = torch.from_numpy(as_stored("int8", queries))
    return torch_chunks(rows, chunk, lambda part: torch._int_mm(part, queries.T).T.contiguous())


def variants(kind, batch):
    """All that is tried: the peer, and ways to use it. A single query is one product in one piece."""
    whole = 1 << 40
    chunks = [whole] if batch == 1 and kind == "f32" else CHUNKS
    peers = {
        "faiss": [with_faiss],
        "usearch": [with_usearch],
        "simsimd": [with_simsimd],
        "numkong": [with_numkong, with_numkong_packed],
        "numpy": [lambda r, q, c=c: with_numpy(r, q, c) for c in chunks],
        "torch": [lambda r, q, c=c, f=f: with_torch(r, q, c, f) for c in chunks for f in (False, True)],
    }
    if kind == "int8" and batch > 16:
        peers["torch _int_mm"] = [lambda r, q: with_int_mm(r, q, TRIAL)]
    if batch > 256:
        # The others are for few queries, and would take minutes.
        peers = {peer: peers[peer] for peer in ["faiss", "numpy", "torch"]}
    return peers


def timed(work):
    time.sleep(CALM)
    start = time.perf_counter()
    made = work()
    return time.perf_counter() - start, made


def trial(batch):
    """Chooses a variant of each peer. Returns each peer's time with some rows, and who is worth measuring."""
    some, queries = Rows(kind, rows.values[:TRIAL], threads), all_queries[: int(batch)]
    times = {}
    for peer, ways in variants(kind, int(batch)).items():
        for way in ways:
            first, _ = timed(lambda: way(some, queries))
            # The first time is enough of those that are far behind.
            fastest = min((t for t, _ in times.values()), default=first)
            runs = [timed(lambda: way(some, queries))[0] for _ in range(2 if first < 3 * fastest else 0)]
            times[peer] = min(times.get(peer, (first, way)), (min([first, *runs]), way), key=lambda t: t[0])
    fastest = min(time for time, _ in times.values())
    for peer, (time, way) in times.items():
        chosen[peer, batch] = way
    worth = lambda peer, t: t <= HOPELESS * fastest or peer == "faiss"
    return {peer: [t, worth(peer, t)] for peer, (t, _) in times.items()}


def search(peer, batch, first, runs):
    """Seconds of each run with other queries, and what the last found."""
    way, size = chosen[peer, batch], int(batch)
    times = []
    for run in range(int(runs)):
        start = (int(first) + run * size) % len(all_queries)
        queries = all_queries[start : start + size]
        seconds, found = timed(lambda: way(rows, queries))
        times.append(seconds)
    return times, found.tolist()


def recall(peer, batch, count):
    """What a peer finds for the first queries."""
    way, size = chosen[peer, batch], int(batch)
    queries = all_queries[: int(count)]
    return [row for s in range(0, len(queries), size) for row in way(rows, queries[s : s + size]).tolist()]


def truth(count):
    """The nearest rows in float64, of values as they are decoded."""
    queries = all_queries[: int(count)].astype("f8")
    parts = []
    for start in range(0, len(rows.values), TRIAL):
        part = rows.values[start : start + TRIAL].astype("f4")
        part = part / numpy.float32(127) if kind == "int8" else part
        parts.append(best_of_scores(queries @ part.astype("f8").T, start))
    return merged(parts).tolist()


def product():
    """Seconds of an f32 matrix product of 2048 x 384 x 65536, the faster of two."""
    generator = numpy.random.default_rng(1)
    a, b = (generator.standard_normal((n, 384), "f4") for n in (2048, TRIAL))
    out = numpy.ones((2048, TRIAL), "f4")
    tensors = [torch.from_numpy(x) for x in (a, b, out)]
    with_torch = timed(lambda: torch.mm(tensors[0], tensors[1].T, out=tensors[2]))[0]
    return min(with_torch, timed(lambda: numpy.matmul(a, b.T, out=out))[0])


def load(kind, path, dim):
    # In memory of its own, which is read somewhat faster than a mapped file.
    if path.endswith(".npy"):
        return numpy.load(path)
    return numpy.fromfile(path, TYPES[kind]).reshape(-1, dim)


KNOWN = {f.__name__: f for f in [trial, search, recall, truth, product]}
kind, path, dim, queries, threads = sys.argv[1:]
dim, threads = int(dim), int(threads)
torch.set_num_threads(threads)
faiss.omp_set_num_threads(threads)
pool = concurrent.futures.ThreadPoolExecutor(threads)
all_queries = numpy.fromfile(queries, "<f4").reshape(-1, dim)
rows = Rows(kind, load(kind, path, dim), threads)
chosen = {}

for line in sys.stdin:
    name, *arguments = line.rstrip("\n").split("\t")
    print(json.dumps(KNOWN[name](*arguments)), flush=True)
