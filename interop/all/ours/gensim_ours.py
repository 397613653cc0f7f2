"""For pytest -p: gensim with our class of word vectors in place of its own."""

import gensim.models
import gensim.models.keyedvectors

import weighbridge


def load_word2vec_format(cls, fname, binary=False, limit=None, binary_chunk_size=None, **others):
    """gensim's own tests call the function behind the method; ours has no chunks."""
    return cls.load_word2vec_format(fname, binary=binary, limit=limit, **others)


gensim.models.KeyedVectors = weighbridge.KeyedVectors
gensim.models.keyedvectors.KeyedVectors = weighbridge.KeyedVectors
gensim.models.keyedvectors._load_word2vec_format = load_word2vec_format
