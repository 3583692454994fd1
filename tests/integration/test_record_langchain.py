"""LangChain's own classes, watched: the same retriever back, usable in a chain, every way to ask counted."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pytest

import resweep
from resweep.testing import MemorySink

langchain = pytest.importorskip("langchain_core")

from langchain_core.documents import Document  # noqa: E402
from langchain_core.embeddings import DeterministicFakeEmbedding  # noqa: E402
from langchain_core.retrievers import BaseRetriever  # noqa: E402
from langchain_core.runnables import RunnableLambda  # noqa: E402
from langchain_core.vectorstores import InMemoryVectorStore  # noqa: E402

pytestmark = pytest.mark.integration


@pytest.fixture
def sink() -> Iterator[MemorySink]:
    with resweep.testing.capture() as memory:
        yield memory


class Fixed(BaseRetriever):
    """Returns documents whose scores stand in the metadata."""

    k: int = 3

    def _get_relevant_documents(self, query: str, *, run_manager: Any = None) -> list[Document]:
        if query == "fail":
            raise ValueError("no")
        return [
            Document(
                id=f"d{i}", page_content=f"text {i}", metadata={"source": f"{i}.md", "score": 0.9 - i / 10}
            )
            for i in range(self.k)
        ]


def _texts(documents: list[Document]) -> list[str]:
    return [document.page_content for document in documents]


def store() -> InMemoryVectorStore:
    made = InMemoryVectorStore(DeterministicFakeEmbedding(size=16))
    made.add_documents(
        [Document(page_content=f"text {i}", metadata={"source": f"{i}.md"}) for i in range(20)]
    )
    return made


def test_a_retriever_stays_one(sink: MemorySink) -> None:
    """Same object, class, fields and equality; pickles as the original."""
    retriever = Fixed()
    assert resweep.watch(retriever, sink=sink) is retriever
    assert isinstance(retriever, BaseRetriever)
    assert retriever.__class__ is Fixed
    assert retriever.model_dump()["k"] == 3
    assert retriever == Fixed()
    assert "Fixed" in repr(retriever)
    assert type(pickle.loads(pickle.dumps(retriever))) is Fixed


def test_every_way_to_ask_counts_once(sink: MemorySink) -> None:
    """invoke, batch of two and stream are four retrievals with ids, sources and scores."""
    retriever = resweep.watch(Fixed(), sink=sink)
    retriever.invoke("a")
    retriever.batch(["b", "c"])
    list(retriever.stream("d"))
    assert sink.counts["retrievals"] == 4
    hit = sink.events[0].hits[0]
    assert (hit.id, hit.source, hit.score) == ("d0", "0.md", 0.9)
    assert {event.asked for event in sink.events} == {3}


async def test_every_way_to_ask_without_waiting_counts_once(sink: MemorySink) -> None:
    """ainvoke, abatch of two and astream are four retrievals."""
    retriever = resweep.watch(Fixed(), sink=sink)
    await retriever.ainvoke("a")
    await retriever.abatch(["b", "c"])
    _ = [chunk async for chunk in retriever.astream("d")]
    assert sink.counts["retrievals"] == 4


def test_a_watched_retriever_works_in_a_chain(sink: MemorySink) -> None:
    """`retriever | f` runs and counts; an exception passes through it unchanged."""
    retriever = resweep.watch(Fixed(), sink=sink)
    chain: Any = retriever | RunnableLambda(_texts)
    assert chain.invoke("q") == ["text 0", "text 1", "text 2"]
    with pytest.raises(ValueError, match="no"):
        chain.invoke("fail")
    assert (sink.counts["ok"], sink.counts["error:value"]) == (1, 1)


def test_callbacks_and_config_still_arrive(sink: MemorySink) -> None:
    """What is passed in `config` reaches LangChain's callbacks."""
    from langchain_core.callbacks import BaseCallbackHandler

    seen: list[int] = []

    class Handler(BaseCallbackHandler):
        def on_retriever_end(self, documents: Any, **kwargs: Any) -> None:
            seen.append(len(documents))

    resweep.watch(Fixed(), sink=sink).invoke("q", config={"callbacks": [Handler()], "tags": ["t"]})
    assert seen == [3]


def test_a_vector_store_retriever_says_its_k_and_gives_its_scores(sink: MemorySink) -> None:
    """k comes from search_kwargs; the store's own scores are seen although the documents carry none."""
    retriever = resweep.watch(
        store().as_retriever(search_kwargs={"k": 5}), sink=sink, config={"context_k": 5}
    )
    assert len(retriever.invoke("text 3")) == 5
    (event,) = sink.events
    assert (event.asked, event.returned) == (5, 5)
    assert all(hit.score is not None for hit in event.hits)
    record = sink.configs[-1]
    assert (record.observed["k"], record.observed["count"], record.default_k) == (5, 20, None)


def test_a_k_that_nobody_chose_is_told(sink: MemorySink) -> None:
    """Without a k, LangChain's default of 4 is what was asked."""
    retriever = resweep.watch(store().as_retriever(), sink=sink)
    retriever.invoke("q")
    assert [(event.asked, event.returned) for event in sink.events] == [(4, 4)]
    assert sink.configs[-1].default_k == 4


def test_a_vector_store_is_watched_itself(sink: MemorySink) -> None:
    """Its searches count once each, with scores where the search returns them."""
    watched = resweep.watch(store(), sink=sink)
    watched.similarity_search_with_score("q", k=3)
    watched.similarity_search("q", k=2)
    watched.search("q", "similarity", k=6)
    events = sink.events
    assert [(event.asked, event.returned) for event in events] == [(3, 3), (2, 2), (6, 6)]
    assert all(hit.score is not None for event in events for hit in event.hits)


class Compression(BaseRetriever):
    """Two stages with the field names of LangChain's ContextualCompressionRetriever."""

    base_retriever: Any
    base_compressor: Any

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        found = self.base_retriever.invoke(query, config={"callbacks": run_manager.get_child()})
        return list(self.base_compressor.compress_documents(found, query))


class Reranker:
    """Keeps the last documents, with a relevance score."""

    def __init__(self, top_n: int) -> None:
        self.top_n = top_n

    def compress_documents(self, documents: list[Document], query: str) -> list[Document]:
        kept = documents[-self.top_n :]
        for at, document in enumerate(kept):
            document.metadata["relevance_score"] = 0.5 - at / 10
        return kept


def test_two_stages_are_seen_apart(sink: MemorySink) -> None:
    """10 candidates, 10 reranked, 3 returned, both scores and the reranker's time."""
    retriever = Compression(base_retriever=Fixed(k=10), base_compressor=Reranker(3))
    resweep.watch(retriever, sink=sink).invoke("q")
    (event,) = sink.events
    assert (event.candidates, event.reranked, event.returned, event.asked) == (10, 10, 3, 3)
    assert (event.hits[0].kind, event.hits[0].score) == ("rerank", 0.5)
    assert event.hits[0].retriever_score == pytest.approx(0.2)
    assert set(event.stages) == {"retrieve_s", "rerank_s"}
    assert resweep.unwatch(retriever) is retriever
    assert type(retriever.base_retriever) is Fixed
    assert type(retriever.base_compressor) is Reranker
