"""Word vectors against gensim, fastText and floret: their files through the program, and back."""

import json
import unittest
import warnings
from pathlib import Path

import numpy as np

from common import Case, SafeTensors

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import fasttext
    import floret
    from gensim.models import KeyedVectors
    from gensim.models.fasttext import load_facebook_vectors
    from gensim.test.utils import datapath

fasttext.FastText.eprint = lambda *_: None

WORDS = "the weigh bridge truck load Daniël 東京 straße 1984 don't </w> a".split()


def vectors(rows=len(WORDS), dim=7):
    """Numbers of every size, with a zero, and some whose bytes are spaces and line breaks."""
    values = np.random.default_rng(5).standard_normal((rows, dim)).astype("<f4")
    values[0, :4] = [0.0, -0.0, 1e-30, 3e38]
    values[1] = np.frombuffer(b"\n \n " * dim, "<f4")
    return values


def keyed(words, values):
    """Vectors of gensim."""
    made = KeyedVectors(vector_size=values.shape[1])
    made.add_vectors(list(words), values)
    return made


class Words(Case):
    def corpus(self):
        """A text to train on."""
        choose = np.random.default_rng(7)
        lines = [" ".join(choose.choice(WORDS, 12)) for _ in range(300)]
        path = self.path("corpus.txt")
        path.write_text("\n".join(lines), "utf-8")
        return str(path)

    def matrix(self, path):
        """The vectors that the program reads."""
        carried = SafeTensors(self.convert(path, f"{path.name}.safetensors", "--force"))
        return carried.tensors["embeddings"]

    def words_of(self, path):
        """The words, by way of a text file that needs no parser."""
        text = self.convert(path, f"{path.name}.vec", "--to", "text", "--allow-loss")
        return [line.split(" ")[0] for line in text.read_text("utf-8").split("\n")[1:-1]]


class Gensim(Words):
    def check_read(self, name, **options):
        values = vectors()
        path = self.path(name)
        keyed(WORDS, values).save_word2vec_format(str(path), **options)
        self.assert_clean(path)
        self.assert_values(self.matrix(path), values)
        self.assertEqual(self.words_of(path), WORDS)
        return path

    def test_binary_is_read_and_comes_back(self):
        path = self.check_read("x.bin", binary=True)
        again = self.convert(path, "again.bin", "--to", "word2vec")
        self.assert_same_bytes(again, path)

    def test_text_is_read(self):
        self.check_read("x.vec", binary=False)

    def test_text_without_header_is_read(self):
        path = self.check_read("x.txt", binary=False, write_header=False)
        self.assertEqual(self.inspect(path)["format"], "glove")

    def test_what_is_written_is_read(self):
        values = vectors()
        source = self.path("source.bin")
        keyed(WORDS, values).save_word2vec_format(str(source), binary=True)
        text = self.convert(source, "x.vec")
        for path, options in [
            (self.convert(source, "x.w2v"), {"binary": True}),
            (self.convert(text, "y.w2v"), {"binary": True}),
            (text, {"binary": False}),
            (self.convert(source, "x.glove"), {"binary": False, "no_header": True}),
        ]:
            read = KeyedVectors.load_word2vec_format(str(path), **options)
            self.assertEqual(read.index_to_key, WORDS)
            self.assert_values(read.vectors, values)

    def test_escapes_come_back(self):
        source = self.path("x.txt")
        source.write_text("new york 1 2\n. . . 3 4\nback\\slash 5 6\n", "utf-8")
        self.refused("convert", source, self.path("x.w2v"), code=2, saying=["word 0", "--escape"])
        escaped = self.convert(source, "x.w2v", "--escape")
        read = KeyedVectors.load_word2vec_format(str(escaped), binary=True)
        self.assertEqual(read.index_to_key[:2], ["new\\syork", ".\\s.\\s."])
        back = self.convert(escaped, "back.bin", "--to", "fasttext", "--escape")
        self.assertIn(b"new york\0", back.read_bytes())


class FastText(Words):
    def train(self, **options):
        settings = dict(dim=6, minCount=1, epoch=2, thread=1, bucket=500, verbose=0)
        model = fasttext.train_unsupervised(self.corpus(), **{**settings, **options})
        path = self.path("model.bin")
        model.save_model(str(path))
        return model, path

    def check(self, model, path):
        self.assert_clean(path)
        found = self.matrix(path)
        for row, word in zip(found, model.words):
            self.assert_values(row, model.get_word_vector(word), word)
        buckets = model.get_input_matrix()[len(model.words) :]
        self.assert_values(found[len(model.words) :], buckets)
        again = self.convert(path, "again.bin", "--to", "fasttext", "--force")
        self.assert_same_bytes(again, path)

    def test_vectors_are_those_of_fasttext(self):
        for options in [
            {"model": "skipgram"},
            {"model": "cbow", "minn": 2, "maxn": 4},
            {"minn": 1, "maxn": 2},
            {"minn": 0, "maxn": 3},
            {"maxn": 0},
        ]:
            with self.subTest(options):
                self.check(*self.train(**options))

    def test_through_other_formats_and_back(self):
        model, path = self.train()
        fifu = self.convert(path, "model.fifu")
        back = self.convert(fifu, "back.bin", "--to", "fasttext")
        again = fasttext.load_model(str(back))
        gensim = load_facebook_vectors(str(back))
        self.assertEqual(again.words, model.words)
        for word in [*model.words, "unknown", "weighbridges"]:
            expected = model.get_word_vector(word)
            np.testing.assert_allclose(again.get_word_vector(word), expected, atol=1e-6)
            # gensim takes this word apart as well, which fastText does not.
            if word != "</s>":
                np.testing.assert_allclose(gensim[word], expected, atol=1e-6)

    def test_its_text_is_read(self):
        model, path = self.train()
        text = self.convert(path, "model.vec", "--allow-loss")
        read = KeyedVectors.load_word2vec_format(str(text))
        for word in model.words:
            self.assert_values(read[word], model.get_word_vector(word), word)

    def test_words_without_subwords_become_a_model(self):
        values = vectors()
        source = self.path("x.bin")
        keyed(WORDS, values).save_word2vec_format(str(source), binary=True)
        model = fasttext.load_model(str(self.convert(source, "y.bin", "--to", "fasttext")))
        self.assertEqual(model.words, WORDS)
        for word, row in zip(WORDS, values):
            # Adding to zero, fastText makes +0 of -0.
            self.assert_values(model.get_word_vector(word), row + np.float32(0))

    def test_other_models_are_refused_by_name(self):
        corpus = self.path("labels.txt")
        words = [f"w{i}" for i in range(400)]
        corpus.write_text("".join(f"__label__{w[-1]} {w} w1\n" for w in words * 5))
        model = fasttext.train_supervised(str(corpus), dim=4, epoch=1, thread=1, verbose=0)
        path = self.path("labels.bin")
        model.save_model(str(path))
        self.refused("convert", path, self.path("x.vec"), code=3, saying=["FT-05", "classifier"])
        model.quantize(str(corpus), qnorm=True)
        model.save_model(str(path))
        self.refused("convert", path, self.path("x.vec"), code=3, saying="FT-0")
        floret_model = floret.train_unsupervised(self.corpus(), dim=4, epoch=1, thread=1)
        floret_model.save_model(str(path))
        self.refused("convert", path, self.path("x.vec"), code=3, saying=["FT-07", "floret"])


class OldModels(Words):
    """fastText models that came with gensim: from before there were versions, and of version 11."""

    def check(self, name, *options):
        path = Path(datapath(name))
        vectors = load_facebook_vectors(str(path))
        carried = SafeTensors(self.convert(path, "carried.safetensors", "--force", *options))
        found = carried.tensors["embeddings"]
        self.assertEqual(len(found), len(vectors.index_to_key) + vectors.bucket)
        compared = 0
        for row, word in zip(found, vectors.index_to_key):
            # gensim takes this word apart, which fastText does not.
            if word != "</s>":
                np.testing.assert_allclose(row, vectors[word], rtol=1e-5, atol=1e-6, err_msg=word)
                compared += 1
        self.assertGreater(compared, 20)
        return path, vectors

    def test_models_without_a_version(self):
        for name in ["lee_fasttext.bin", "non_ascii_fasttext.bin"]:
            with self.subTest(name):
                path, vectors = self.check(name)
                self.assert_clean(path)
                # Today's fastText reads what is made of it.
                today = self.convert(path, "today.bin", "--to", "fasttext", "--force")
                model = fasttext.load_model(str(today))
                self.assertEqual(model.words, vectors.index_to_key)
                for word in [*model.words[:50], "unknown", "nevím"]:
                    if word != "</s>":
                        np.testing.assert_allclose(
                            model.get_word_vector(word), vectors[word], rtol=1e-5, atol=1e-6
                        )

    def test_version_11(self):
        path, _ = self.check("lee_fasttext_new.bin")
        self.assert_clean(path)
        self.assert_same_bytes(self.convert(path, "again.bin", "--to", "fasttext"), path)

    def test_an_empty_word_comes_back(self):
        path, vectors = self.check("toy-model-pretrained.bin")
        self.assertIn("", vectors.index_to_key)
        self.assert_same_bytes(self.convert(path, "again.bin", "--to", "fasttext"), path)

    def test_words_of_another_encoding(self):
        path = Path(datapath("cp852_fasttext.bin"))
        self.refused("lookup", path, "jen", code=3, saying=["FT-09", "--lossy"])
        vectors = load_facebook_vectors(str(path), encoding="cp852")
        done = self.run_program("lookup", "--json", "--lossy", path, "jen", "podle", "zde")
        for line in done.stdout.splitlines():
            found = json.loads(line)
            np.testing.assert_allclose(found["vector"], vectors[found["word"]], rtol=1e-5)
        done = self.run_program("convert", "--lossy", path, self.path("x.safetensors"))
        self.assertIn(b"words are not UTF-8", done.stdout)


class Floret(Words):
    def test_tables_are_read_and_written(self):
        settings = dict(mode="floret", hashCount=3, bucket=100, minn=2, maxn=4, dim=6, epoch=1)
        model = floret.train_unsupervised(self.corpus(), minCount=1, thread=1, **settings)
        path = self.path("x.floret")
        model.save_floret_vectors(str(path))
        self.assert_clean(path)
        lines = path.read_text("utf-8").split("\n")
        expected = np.array([line.split()[1:] for line in lines[1:-1]], "<f4")
        self.assert_values(self.matrix(path), expected)
        written = self.convert(path, "y.floret").read_text("utf-8").split("\n")
        self.assertEqual(written[0], lines[0])
        self.assert_values(np.array([line.split()[1:] for line in written[1:-1]], "<f4"), expected)

    def test_vectors_are_those_of_floret(self):
        words = [*WORDS[:5], "unknown", "東", "x"]
        # floret adds a row to the most frequent word that is not in the table; `</s>` has no rows.
        for minn, maxn in [(3, 5), (1, 3), (0, 2), (0, 0)]:
            with self.subTest(minn=minn, maxn=maxn):
                settings = dict(mode="floret", hashCount=2, bucket=50, dim=6, epoch=5, lr=0.5)
                model = floret.train_unsupervised(
                    self.corpus(), minCount=1, thread=1, minn=minn, maxn=maxn, **settings
                )
                path = self.path(f"{minn}-{maxn}.floret")
                model.save_floret_vectors(str(path))
                asked = [word for word in words if model.get_word_id(word) != 0]
                for line in self.run_program("lookup", "--json", path, *asked).stdout.splitlines():
                    found = json.loads(line)
                    expected = model.get_word_vector(found["word"])
                    # The table has five digits of each number.
                    most = 1e-4 * np.abs(model.get_input_matrix()).max()
                    np.testing.assert_allclose(found["vector"], expected, atol=most)


if __name__ == "__main__":
    unittest.main()
