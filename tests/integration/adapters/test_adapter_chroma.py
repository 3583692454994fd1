"""Chroma's own collection, watched."""

# The library is only in an environment of its own, where types are not checked.
# mypy: disable-error-code="import-not-found, import-untyped, no-untyped-call, misc"
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import resweep
from resweep.testing import MemorySink

chromadb = pytest.importorskip("chromadb")

pytestmark = pytest.mark.integration


@pytest.fixture
def sink() -> Iterator[MemorySink]:
    with resweep.testing.capture() as memory:
        yield memory


@pytest.fixture
def collection() -> Iterator[Any]:
    client = chromadb.EphemeralClient()
    made = client.create_collection("docs", metadata={"hnsw:space": "cosine"}, embedding_function=None)
    made.add(
        ids=[f"d{i}" for i in range(20)],
        embeddings=[[1.0, i / 20, 0.0] for i in range(20)],
        documents=[f"text {i}" for i in range(20)],
        metadatas=[{"source": f"{i}.md", "tenant": "acme" if i < 3 else "other"} for i in range(20)],
    )
    yield made
    client.delete_collection("docs")


def test_each_question_of_a_call_is_a_retrieval(sink: MemorySink, collection: Any) -> None:
    """Two embeddings are two retrievals, with ids, texts, sources and distances."""
    assert resweep.watch(collection, sink=sink) is collection
    found = collection.query(query_embeddings=[[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]], n_results=4)
    assert len(found["ids"]) == 2
    events = sink.events
    assert [(event.asked, event.returned) for event in events] == [(4, 4), (4, 4)]
    hit = events[0].hits[0]
    assert (hit.id, hit.source, hit.kind, hit.tokens) == ("d0", "0.md", "distance", 2)
    assert events[0].query_key != events[1].query_key
    observed = sink.configs[-1].observed
    assert (observed["framework"], observed["collection"], observed["metric"]) == ("chroma", "docs", "cosine")


def test_n_results_nobody_gave_is_chromas_own_and_filters_are_grouped(
    sink: MemorySink, collection: Any
) -> None:
    """Ten by itself; three under the tenant."""
    resweep.watch(collection, sink=sink)
    collection.query(query_embeddings=[[1.0, 0.0, 0.0]])
    collection.query(query_embeddings=[[1.0, 0.0, 0.0]], where={"tenant": "acme"})
    assert [(event.asked, event.returned) for event in sink.events] == [(10, 10), (10, 3)]
    assert sink.windows[0].groups["tenant"].short == 1


def test_a_wrong_vector_size_is_a_dimension_mismatch(sink: MemorySink, collection: Any) -> None:
    """Chroma's own exception reaches the caller and is classed."""
    resweep.watch(collection, sink=sink)
    with pytest.raises(Exception, match="dimension"):
        collection.query(query_embeddings=[[1.0, 0.0]], n_results=2)
    assert sink.counts["error:dimension_mismatch"] == 1


def test_fetching_by_id_is_no_retrieval(sink: MemorySink, collection: Any) -> None:
    """`get` and `peek` count nothing; unwatch restores the class."""
    kind = type(collection)
    resweep.watch(collection, sink=sink)
    collection.get(ids=["d1"])
    collection.peek()
    assert sink.counts["retrievals"] == 0
    assert type(resweep.unwatch(collection)) is kind
