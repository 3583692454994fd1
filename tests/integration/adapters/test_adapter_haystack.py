"""Haystack's own components and pipelines, watched."""

# The library is only in an environment of its own, where types are not checked.
# mypy: disable-error-code="import-not-found, import-untyped, misc, untyped-decorator"
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import resweep
from resweep.testing import MemorySink

pytest.importorskip("haystack")

from haystack import Document, Pipeline, component
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore

pytestmark = pytest.mark.integration


@pytest.fixture
def sink() -> Iterator[MemorySink]:
    with resweep.testing.capture() as memory:
        yield memory


@pytest.fixture
def store() -> Any:
    made = InMemoryDocumentStore()
    made.write_documents(
        [
            Document(
                id=f"d{i}",
                content=f"refunds take {i} days",
                meta={"file_path": f"{i}.md", "tenant": "acme" if i < 3 else "other"},
            )
            for i in range(20)
        ]
    )
    return made


@component
class KeepRanker:
    """Keeps the last documents and scores them anew."""

    def __init__(self, top_k: int = 3) -> None:
        self.top_k = top_k

    @component.output_types(documents=list[Document])
    def run(self, query: str, documents: list[Document]) -> dict[str, list[Document]]:
        return {"documents": documents[-self.top_k :]}


def test_a_component_is_watched_in_place(sink: MemorySink, store: Any) -> None:
    """Same object and class; ids, sources and scores are read; a top_k nobody chose is told."""
    retriever = InMemoryBM25Retriever(store)
    assert resweep.watch(retriever, sink=sink) is retriever
    assert isinstance(retriever, InMemoryBM25Retriever)
    assert len(retriever.run(query="refunds")["documents"]) == 10
    (event,) = sink.events
    assert (event.asked, event.returned) == (10, 10)
    assert event.hits[0].id.startswith("d")
    assert event.hits[0].source is not None
    assert event.hits[0].score is not None
    assert sink.configs[-1].default_k == 10


def test_arguments_of_the_call_win(sink: MemorySink, store: Any) -> None:
    """top_k and filters of one run."""
    retriever = resweep.watch(InMemoryBM25Retriever(store, top_k=5), sink=sink)
    wanted = {"field": "meta.tenant", "operator": "==", "value": "acme"}
    retriever.run(query="refunds", top_k=7, filters=wanted)
    (event,) = sink.events
    assert (event.asked, event.returned) == (7, 3)
    assert set(event.filters or ()) == {"meta.tenant"}


def test_a_watched_component_works_in_a_pipeline(sink: MemorySink, store: Any) -> None:
    """It is added, connected, run and saved like the original."""
    pipeline = Pipeline()
    pipeline.add_component("retriever", resweep.watch(InMemoryBM25Retriever(store, top_k=4), sink=sink))
    pipeline.add_component("ranker", KeepRanker(2))
    pipeline.connect("retriever.documents", "ranker.documents")
    pipeline.run({"retriever": {"query": "refunds"}, "ranker": {"query": "refunds"}})
    assert [(event.asked, event.returned) for event in sink.events] == [(4, 4)]
    assert "InMemoryBM25Retriever" in pipeline.dumps()


def test_a_pipeline_shows_its_stages(sink: MemorySink, store: Any) -> None:
    """Candidates of the retriever, documents into the ranker, what came out of it."""
    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(store, top_k=8))
    pipeline.add_component("ranker", KeepRanker(3))
    pipeline.connect("retriever.documents", "ranker.documents")
    resweep.watch(pipeline, sink=sink)
    pipeline.run({"retriever": {"query": "refunds"}, "ranker": {"query": "refunds"}})
    (event,) = sink.events
    assert (event.candidates, event.reranked, event.returned, event.asked) == (8, 8, 3, 3)
    assert set(event.stages) == {"retrieve_s", "rerank_s"}
    resweep.unwatch(pipeline)
    assert type(pipeline) is Pipeline
