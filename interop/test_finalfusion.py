"""finalfusion: files of the Python package hold the same here and come back byte for byte, and the
package reads ours."""

import numpy as np
from finalfusion import load_finalfusion
from finalfusion.vocab import ExplicitVocab

import finalfusion_peer as peer
from common import Case, SafeTensors, embd_stream, expanded, for_each

VOCABULARIES = list(peer.VOCABULARIES)
# Projection, norms.
QUANTIZED = [(False, False), (False, True), (True, False), (True, True)]


class FinalfusionCase(Case):
    def there_and_back(self, source):
        """Straight and through safetensors the very bytes of the source come back."""
        self.assert_same_bytes(self.convert(source, "direct.fifu"), source)
        middle = self.convert(source, "middle.safetensors")
        self.assert_same_bytes(self.convert(middle, "back.fifu"), source)
        return SafeTensors(middle)

    def source(self, embeddings):
        """A file of the package, without a finding. It forgets the indices of n-grams when it says
        how long an explicit vocabulary is; then that and nothing else is found and put right."""
        source = peer.write(self.path("source.fifu"), embeddings)
        if not isinstance(embeddings.vocab, ExplicitVocab):
            self.assert_clean(source)
            return source
        self.assertEqual([f["rule"] for f in self.findings(source)], ["FIFU-25"])
        right = self.convert(source, "right.fifu")
        self.assert_clean(right)
        found, expected = right.read_bytes(), bytearray(source.read_bytes())
        at = 12 + 4 * expected[8] + 4
        length = int.from_bytes(expected[at : at + 8], "little")
        length += 8 * len(embeddings.vocab.subword_indexer.ngrams)
        expected[at : at + 8] = length.to_bytes(8, "little")
        self.assertEqual(found, bytes(expected))
        return right

    def assert_looked_up(self, found, expected):
        """Two files give all words the same vectors, and the same words none."""
        seen = 0
        for word in peer.WORDS + peer.UNKNOWN:
            vectors = [e.embedding(word) for e in (found, expected)]
            self.assertEqual(vectors[0] is None, vectors[1] is None, word)
            if vectors[0] is not None:
                self.assert_values(vectors[0], vectors[1], word)
                seen += 1
        self.assertGreaterEqual(seen, len(peer.WORDS))

    def assert_read_by_package(self, path, expected):
        for mmap in (False, True):
            found = load_finalfusion(str(path), mmap=mmap)
            self.assertEqual(found.vocab, expected.vocab)
            self.assert_values(peer.rows(found), peer.rows(expected))
            self.assert_looked_up(found, expected)
            self.assertEqual(found.norms is None, expected.norms is None)
            if found.norms is not None:
                self.assert_values(np.asarray(found.norms), np.asarray(expected.norms))


@expanded
class Theirs(FinalfusionCase):
    @for_each((v, norms) for v in VOCABULARIES for norms in (False, True))
    def test_plain(self, case):
        embeddings = peer.plain(*case)
        source = self.source(embeddings)
        middle = self.there_and_back(source)
        self.assertEqual(middle.names(), ["embeddings"] + ["norms"] * case[1])
        self.assert_values(middle.tensors["embeddings"], np.asarray(embeddings.storage))
        if case[1]:
            self.assert_values(middle.tensors["norms"], np.asarray(embeddings.norms))
        shown = self.inspect(source, "--values")["tensors"]
        self.assert_shown(shown[0], np.asarray(embeddings.storage))
        self.assert_read_by_package(self.folder / "direct.fifu", embeddings)

    @for_each((v, *flags) for v in VOCABULARIES for flags in QUANTIZED)
    def test_quantized(self, case):
        embeddings = peer.quantized(*case)
        source = self.source(embeddings)
        self.there_and_back(source)
        # A projection adds up products, in an order of one's own.
        tolerance = 2e-6 if case[1] else 0
        found, expected = self.values(source), peer.rows(embeddings)
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)
        self.assert_read_by_package(self.folder / "direct.fifu", embeddings)

    def values(self, source):
        """What codes stand for."""
        values = self.convert(source, "values.safetensors", "--dtype", "f32", "--allow-loss")
        return SafeTensors(values).tensors["embeddings"]

    @for_each([1, 2, 255, 256])
    def test_centroids(self, centroids):
        embeddings = peer.quantized("simple", centroids=centroids, parts=6)
        source = self.source(embeddings)
        self.there_and_back(source)
        self.assert_values(self.values(source), peer.rows(embeddings))

    def test_metadata(self):
        source = self.source(peer.plain("bucket", True, True))
        self.there_and_back(source)
        shown = self.inspect(source)["metadata"]
        common = peer.METADATA["common"]
        self.assertEqual(shown["title"], peer.METADATA["title"])
        self.assertEqual(shown["common.dims"], common["dims"])
        self.assertEqual(shown["common.rate"], common["rate"])
        self.assertIs(shown["common.fast"], True)
        edited = self.convert(source, "edited.fifu", "--set", "title=other")
        found = dict(load_finalfusion(str(edited)).metadata)
        self.assertEqual(found, {**peer.METADATA, "title": "other"})

    def test_original_lengths(self):
        """An array on its own has the vectors as they were trained."""
        embeddings = peer.plain("simple", norms=True)
        source = peer.write(self.path("source.fifu"), embeddings)
        array = self.convert(source, "words.npy", "--allow-loss")
        expected = np.asarray(embeddings.storage) * np.asarray(embeddings.norms)[:, None]
        self.assert_values(np.load(array), expected)


class Ours(FinalfusionCase):
    def test_table_of_a_model(self):
        """The table of a sentence embedder's word embeddings, with its vocabulary."""
        tokens = ["[PAD]", "grain", "##s", "é", "東京"]
        table = peer.matrix(len(tokens))
        tensors = {"embeddings.word_embeddings.weight": table, "other": peer.matrix(3)}
        source = embd_stream(self.path("model.weights"), tensors, tokens)
        self.refused("convert", source, self.path("lost.fifu"), code=2, saying="other")
        made = self.convert(source, "words.fifu", "--allow-loss")
        self.assert_clean(made)
        for mmap in (False, True):
            found = load_finalfusion(str(made), mmap=mmap)
            self.assertEqual(found.vocab.words, tokens)
            lengths = np.linalg.norm(np.asarray(found.storage), axis=1)
            np.testing.assert_allclose(lengths, 1, atol=1e-6)
            whole = np.asarray(found.storage) * np.asarray(found.norms)[:, None]
            np.testing.assert_allclose(whole, table, rtol=1e-6)

    def test_rows_get_unit_length(self):
        """Rows of a format that does not care for lengths have their own in the norms."""
        tokens = ["grain", "zero", "東京"]
        values = np.array([[3, 4, 0], [0, 0, 0], [1, 2, 2]], "f4")
        source = self.path("words.txt")
        lines = [" ".join([t, *map(str, row)]) for t, row in zip(tokens, values)]
        source.write_text("3 3\n" + "\n".join(lines) + "\n", "utf-8")
        made = load_finalfusion(str(self.convert(source, "words.fifu", "--from", "text")))
        self.assertEqual(made.vocab.words, tokens)
        self.assert_values(np.asarray(made.norms), np.array([5, 0, 3], "f4"))
        lengths = np.array([[5], [1], [3]], "f4")
        self.assert_values(np.asarray(made.storage), values / lengths)
