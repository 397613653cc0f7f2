"""The adapters in the packages that they are for: each finds the right document, and tells questions from documents."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import numpy as np
import pytest
from conftest import PROMPTS

import weighbridge

DOCUMENTS = [
    "The lorry stopped on the weighbridge, and forty tonnes were shown.",
    "Cats sleep most of the day, and hunt at dawn.",
    "In spring it rains for weeks in the valley.",
    "She bakes bread with rye flour and a little honey.",
    "The orchestra played a symphony by Brahms.",
    "Trains to the north are late because of snow.",
]
QUESTIONS = {"how heavy is the truck?": 0, "what do pets do at night?": 1, "railway delays in winter": 5}


@pytest.fixture(scope="module")
def expected(prompted: Path) -> tuple[np.ndarray, np.ndarray]:
    """The vectors of the questions and of the documents, with their prompts written out."""
    encoder = weighbridge.Encoder(prompted)
    questions = encoder.encode([PROMPTS["query"] + text for text in QUESTIONS])
    documents = encoder.encode([PROMPTS["document"] + text for text in DOCUMENTS])
    assert np.array_equal(questions, encoder.encode_query(list(QUESTIONS)))
    assert not np.allclose(documents, encoder.encode(DOCUMENTS), atol=1e-3)
    return questions, documents


def test_langchain(prompted: Path, expected: tuple[np.ndarray, np.ndarray]) -> None:
    from langchain_core.documents import Document
    from langchain_core.vectorstores import InMemoryVectorStore

    from weighbridge.langchain import WeighbridgeEmbeddings

    embeddings = WeighbridgeEmbeddings(str(prompted), compute="f32", threads=1)
    assert np.allclose(embeddings.embed_documents(DOCUMENTS), expected[1], atol=1e-6)
    assert np.allclose([embeddings.embed_query(text) for text in QUESTIONS], expected[0], atol=1e-6)
    assert np.allclose(asyncio.run(embeddings.aembed_query(next(iter(QUESTIONS)))), expected[0][0], atol=1e-6)
    assert embeddings.embed_documents([]) == []
    store = InMemoryVectorStore(embeddings)
    store.add_documents([Document(text, metadata={"n": i}) for i, text in enumerate(DOCUMENTS)])
    for question, right in QUESTIONS.items():
        (found,) = store.similarity_search(question, k=1)
        assert found.metadata["n"] == right
    retriever = store.as_retriever(search_kwargs={"k": 2})
    assert retriever.invoke(next(iter(QUESTIONS)))[0].page_content == DOCUMENTS[0]


def test_llama_index(prompted: Path, expected: tuple[np.ndarray, np.ndarray]) -> None:
    from llama_index.core import Document, Settings, VectorStoreIndex

    from weighbridge.llama_index import WeighbridgeEmbedding

    embedding = WeighbridgeEmbedding(model=str(prompted), threads=1)
    assert np.allclose(embedding.get_text_embedding_batch(DOCUMENTS), expected[1], atol=1e-6)
    assert np.allclose(embedding.get_query_embedding(next(iter(QUESTIONS))), expected[0][0], atol=1e-6)
    assert np.allclose(asyncio.run(embedding.aget_query_embedding(next(iter(QUESTIONS)))), expected[0][0], atol=1e-6)
    assert np.allclose(asyncio.run(embedding.aget_text_embedding(DOCUMENTS[1])), expected[1][1], atol=1e-6)
    assert embedding.to_dict()["class_name"] == "WeighbridgeEmbedding"
    Settings.llm = None
    index = VectorStoreIndex.from_documents([Document(text=text) for text in DOCUMENTS], embed_model=embedding)
    for question, right in QUESTIONS.items():
        (found, *_) = index.as_retriever(similarity_top_k=2).retrieve(question)
        assert found.text == DOCUMENTS[right]


def test_haystack(prompted: Path, expected: tuple[np.ndarray, np.ndarray]) -> None:
    from haystack import Document, Pipeline
    from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
    from haystack.components.writers import DocumentWriter
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    from weighbridge.haystack import WeighbridgeDocumentEmbedder, WeighbridgeTextEmbedder

    store = InMemoryDocumentStore(embedding_similarity_function="cosine")
    indexing = Pipeline()
    indexing.add_component("embedder", WeighbridgeDocumentEmbedder(str(prompted), threads=1))
    indexing.add_component("writer", DocumentWriter(store))
    indexing.connect("embedder.documents", "writer.documents")
    indexing.run({"embedder": {"documents": [Document(content=text) for text in DOCUMENTS]}})
    stored = {document.content: document.embedding for document in store.filter_documents()}
    assert np.allclose([stored[text] for text in DOCUMENTS], expected[1], atol=1e-6)

    asking = Pipeline()
    asking.add_component("embedder", WeighbridgeTextEmbedder(str(prompted), threads=1))
    asking.add_component("retriever", InMemoryEmbeddingRetriever(store, top_k=1))
    asking.connect("embedder.embedding", "retriever.query_embedding")
    # A pipeline is stored as YAML and made anew; its store would be another, so only the embedder is.
    for question, right in QUESTIONS.items():
        (found,) = asking.run({"embedder": {"text": question}})["retriever"]["documents"]
        assert found.content == DOCUMENTS[right]
    again = WeighbridgeTextEmbedder.from_dict(json.loads(json.dumps(WeighbridgeTextEmbedder(str(prompted)).to_dict())))
    assert np.allclose(again.run(next(iter(QUESTIONS)))["embedding"], expected[0][0], atol=1e-6)
    stored_pipeline = Pipeline()
    stored_pipeline.add_component("embedder", WeighbridgeTextEmbedder(str(prompted)))
    # Haystack asks for the word of whoever loads components that are not its own.
    made_anew = Pipeline.loads(stored_pipeline.dumps(), allowed_modules=["weighbridge.haystack"])
    answer = made_anew.run({"embedder": {"text": next(iter(QUESTIONS))}})
    assert np.allclose(answer["embedder"]["embedding"], expected[0][0], atol=1e-6)


def test_chroma(prompted: Path, expected: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    import chromadb

    from weighbridge.chroma import WeighbridgeEmbeddingFunction

    function = WeighbridgeEmbeddingFunction(str(prompted), threads=1)
    assert np.allclose(function(DOCUMENTS), expected[1], atol=1e-6)
    client = chromadb.PersistentClient(str(tmp_path))
    collection = client.create_collection("notes", embedding_function=function)
    collection.add(ids=[str(i) for i in range(len(DOCUMENTS))], documents=DOCUMENTS)
    # Somebody who opens it again does not name the function: Chroma stored what it needs.
    for opened in (collection, client.get_collection("notes")):
        found = opened.query(query_texts=list(QUESTIONS), n_results=1, include=["distances"])
        assert [ids[0] for ids in found["ids"]] == [str(right) for right in QUESTIONS.values()]
        # It asks with the prompt of questions: squared distances tell.
        wanted = [((expected[0][i] - expected[1][r]) ** 2).sum() for i, r in enumerate(QUESTIONS.values())]
        assert np.allclose([d[0] for d in found["distances"]], wanted, atol=1e-4)
