"""LangChain's own compression and ensemble retrievers, watched."""

# The library is only in an environment of its own, where types are not checked.
# mypy: disable-error-code="import-not-found, import-untyped, no-untyped-call, misc"
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

import resweep
from resweep.testing import MemorySink

pytest.importorskip("langchain_classic")

from langchain_classic.retrievers import ContextualCompressionRetriever, EnsembleRetriever
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore

pytestmark = pytest.mark.integration


class Reranker(BaseDocumentCompressor):
    """Keeps the last documents, with a relevance score."""

    top_n: int = 3

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Any = None
    ) -> Sequence[Document]:
        kept = list(documents)[-self.top_n :]
        for at, document in enumerate(kept):
            document.metadata["relevance_score"] = 0.5 - at / 10
        return kept


@pytest.fixture
def sink() -> Iterator[MemorySink]:
    with resweep.testing.capture() as memory:
        yield memory


def store() -> InMemoryVectorStore:
    made = InMemoryVectorStore(DeterministicFakeEmbedding(size=16))
    made.add_documents([Document(f"text {i}", metadata={"source": f"{i}.md"}) for i in range(20)])
    return made


def test_two_stages_of_a_compression_retriever(sink: MemorySink) -> None:
    """8 candidates, 8 reranked, 3 returned, both depths introspected, the original back afterwards."""
    base = store().as_retriever(search_kwargs={"k": 8})
    retriever = ContextualCompressionRetriever(base_retriever=base, base_compressor=Reranker())
    assert resweep.watch(retriever, sink=sink) is retriever
    assert len(retriever.invoke("text 3")) == 3
    (event,) = sink.events
    assert (event.candidates, event.reranked, event.returned, event.asked) == (8, 8, 3, 3)
    assert (event.hits[0].kind, event.hits[0].score) == ("rerank", 0.5)
    assert set(event.stages) == {"retrieve_s", "rerank_s"}
    resweep.unwatch(retriever)
    assert type(retriever) is ContextualCompressionRetriever
    assert type(retriever.base_compressor) is Reranker


async def test_the_same_without_waiting(sink: MemorySink) -> None:
    """ainvoke sees the same stages."""
    base = store().as_retriever(search_kwargs={"k": 8})
    retriever = ContextualCompressionRetriever(base_retriever=base, base_compressor=Reranker())
    await resweep.watch(retriever, sink=sink).ainvoke("text 3")
    (event,) = sink.events
    assert (event.candidates, event.reranked, event.returned) == (8, 8, 3)


def test_an_ensemble_counts_its_retrievers_as_candidates(sink: MemorySink) -> None:
    """Two retrievers of five give ten candidates; each watched itself counts its own."""
    parts = [store().as_retriever(search_kwargs={"k": 5}) for _ in range(2)]
    ensemble = EnsembleRetriever(retrievers=parts, weights=[0.5, 0.5])
    resweep.watch(ensemble, sink=sink, pipeline="ensemble")
    found = ensemble.invoke("text 3")
    (event,) = sink.events
    assert (event.candidates, event.returned) == (10, len(found))
    resweep.watch(parts[0], sink=sink, pipeline="part")
    ensemble.invoke("text 3")
    assert sorted(event.pipeline for event in sink.events) == ["ensemble", "ensemble", "part"]
