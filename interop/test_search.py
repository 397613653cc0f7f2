"""Nearest rows against NumPy in double precision and gensim: the same rows in the same order, whatever the
rows are stored as; and recall is what one computes oneself."""

import json

import gensim
import numpy as np

from common import Case, SafeTensors, expanded, for_each

ROWS, DIM, K = 400, 48, 10


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def random_rows(rng):
    return rng.standard_normal((ROWS, DIM)).astype("<f4")


def clustered(rng):
    centres = rng.standard_normal((8, DIM))
    return (centres[rng.integers(0, 8, ROWS)] + 0.05 * rng.standard_normal((ROWS, DIM))).astype("<f4")


def near_tied(rng):
    """Rows that differ in the last bits of a few values."""
    rows = np.repeat(rng.standard_normal((1, DIM)).astype("<f4"), ROWS, axis=0)
    for row in rows:
        at = rng.integers(0, DIM)
        row[at] = np.nextafter(row[at], np.float32(rng.choice([-9, 9])))
    return rows


def denormal(rng):
    return (rng.standard_normal((ROWS, DIM)) * 1e-40).astype("<f4")


def huge(rng):
    return (rng.standard_normal((ROWS, DIM)) * 5e37).astype("<f4")


def mixed(rng):
    return (rng.standard_normal((ROWS, DIM)) * 10.0 ** rng.integers(-30, 30, (ROWS, 1))).astype("<f4")


def with_nan(rng):
    rows = random_rows(rng)
    rows[::7, 3] = np.nan
    return rows


def duplicates(rng):
    rows = random_rows(rng)
    rows[ROWS // 2 :] = rows[: ROWS // 2]
    return rows


METRICS = ["cosine", "dot", "l2"]
KINDS = [random_rows, clustered, near_tied, denormal, huge, mixed, with_nan, duplicates]


def scores(rows, query, metric):
    """In double precision."""
    rows, query = rows.astype("f8"), query.astype("f8")
    with np.errstate(invalid="ignore", divide="ignore"):
        if metric == "l2":
            return -np.sqrt(((rows - query) ** 2).sum(axis=1))
        products = (rows * query).sum(axis=1)
        if metric == "dot":
            return products
        return products / np.sqrt((rows**2).sum(axis=1) * (query**2).sum())


def ranking(rows, query, metric, k=K):
    """The best rows; of equal ones the lower, and never NaN."""
    found = scores(rows, query, metric)
    order = np.lexsort((np.arange(len(found)), -found))
    return [int(row) for row in order if not np.isnan(found[row])][:k]


@expanded
class Search(Case):
    def weighbridge(self, *arguments):
        """What it prints; names of files are those of the test's folder."""
        placed = [self.path(a) if "." in a and a[0].isalpha() else a for a in arguments]
        return self.run_program(*placed).stdout.decode()

    def found(self, *arguments):
        return [json.loads(line) for line in self.weighbridge("search", *arguments, "--json").splitlines()]

    def check(self, path, decoded, queries, metric):
        np.save(self.folder / "asked.npy", queries)
        answers = self.found(path, "--queries", "asked.npy", "-k", str(K), "--metric", metric)
        self.assertEqual(len(answers), len(queries))
        for i, (answer, query) in enumerate(zip(answers, queries)):
            rows = [hit["row"] for hit in answer["hits"]]
            # Sums in another order differ by some 1e-16: rows that near may change places.
            exact = scores(decoded, query, metric)
            expected = ranking(decoded, query, metric)
            self.assertEqual(answer["query"], i)
            self.assertEqual(len(rows), len(expected))
            if rows != expected:
                near = np.abs(exact[rows] - exact[expected]) <= 1e-13 * np.abs(exact[expected])
                self.assertTrue(near.all(), (metric, rows, expected))

    @for_each((kind.__name__, metric) for kind in KINDS for metric in METRICS)
    def test_rows_are_ranked_as_by_numpy(self, case):
        name, metric = case
        kind = globals()[name]
        rng = np.random.default_rng(1)
        rows = kind(rng)
        queries = np.vstack([kind(rng)[1:4], rows[5:6]])
        np.save(self.folder / "rows.npy", rows)
        self.check("rows.npy", rows, queries, metric)

    @for_each(METRICS)
    def test_rounded_rows_are_ranked_by_what_they_stand_for(self, metric):
        rng = np.random.default_rng(2)
        rows = unit(clustered(rng)).astype("<f4")
        queries = clustered(rng)[:4]
        np.save(self.folder / "rows.npy", rows)
        self.weighbridge("quantize", "rows.npy", "rows.i8bin", "--method", "i8")
        codes = np.fromfile(self.folder / "rows.i8bin", "i1").reshape(rows.shape)
        self.check("rows.i8bin", (codes.astype("<f4") / np.float32(127)), queries, metric)
        np.save(self.folder / "half.npy", rows.astype("<f2"))
        self.check("half.npy", rows.astype("<f2").astype("<f4"), queries, metric)

    def test_words_are_in_the_order_of_gensim(self):
        rng = np.random.default_rng(3)
        vectors = gensim.models.KeyedVectors(DIM)
        words = [f"w{i}" for i in range(ROWS)]
        vectors.add_vectors(words, clustered(rng))
        vectors.save_word2vec_format(str(self.folder / "words.bin"), binary=True)
        for word in words[:20]:
            hits = self.found("words.bin", word)[0]["hits"]
            expected = vectors.most_similar(word, topn=K)
            self.assertEqual([hit["word"] for hit in hits], [w for w, _ in expected])
            np.testing.assert_allclose([h["score"] for h in hits], [s for _, s in expected], atol=1e-5)

    def test_recall_is_what_one_computes_oneself(self):
        rng = np.random.default_rng(4)
        rows = unit(clustered(rng)).astype("<f4")
        np.save(self.folder / "rows.npy", rows)
        self.weighbridge("quantize", "rows.npy", "rows.i8bin", "--method", "i8")
        codes = np.fromfile(self.folder / "rows.i8bin", "i1").reshape(rows.shape)
        rounded = codes.astype("<f4") / np.float32(127)
        told = json.loads(self.weighbridge("recall", "rows.npy", "rows.i8bin", "-k", "5", "--json"))
        kept, largest, ranks = 0, 0.0, []
        for row, query in enumerate(rows):
            first = [r for r in ranking(rows, query, "cosine", 6) if r != row][:5]
            second = [r for r in ranking(rounded, query, "cosine", 6) if r != row][:5]
            kept += len(set(first) & set(second))
            before, after = (scores(m, query, "cosine")[first] for m in (rows, rounded))
            largest = max(largest, np.abs(before - after).max())
            ranks.append(np.corrcoef(np.argsort(np.argsort(-before)), np.argsort(np.argsort(-after)))[0, 1])
        self.assertEqual((told["k"], told["queries"]), (5, ROWS))
        self.assertAlmostEqual(told["recall"], kept / (5 * ROWS), places=12)
        self.assertAlmostEqual(told["max_score_error"], largest, places=12)
        self.assertAlmostEqual(told["rank_correlation"], float(np.mean(ranks)), places=3)

    def test_neighbours_of_every_row(self):
        rng = np.random.default_rng(5)
        rows = clustered(rng)
        np.save(self.folder / "rows.npy", rows)
        self.weighbridge("neighbours", "rows.npy", "-k", "4", "-o", "near.safetensors")
        near = SafeTensors(self.path("near.safetensors"))
        rows_found = near.tensors["rows"]
        self.assertEqual(rows_found.shape, (ROWS, 4))
        for row, query in enumerate(rows):
            expected = [r for r in ranking(rows, query, "cosine", 5) if r != row][:4]
            self.assertEqual(rows_found[row].tolist(), expected)
        self.weighbridge("neighbours", "rows.npy", "--threshold", "0.9", "-o", "groups.jsonl")
        lines = (self.folder / "groups.jsonl").read_text().splitlines()
        groups = [json.loads(line)["rows"] for line in lines]
        joined = scores_of_all(rows) >= 0.9
        self.assertEqual(sorted(map(sorted, groups)), sorted(components(joined)))


def scores_of_all(rows):
    rows = unit(rows.astype("f8"))
    return rows @ rows.T


def components(joined):
    """Groups of at least two that hang together."""
    left, groups = set(range(len(joined))), []
    while left:
        group, waiting = set(), {min(left)}
        while waiting:
            row = waiting.pop()
            group.add(row)
            waiting |= set(np.flatnonzero(joined[row]).tolist()) - group
        left -= group
        if len(group) > 1:
            groups.append(sorted(group))
    return groups
