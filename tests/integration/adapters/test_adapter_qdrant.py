"""Qdrant's own client in memory, watched."""

# The library is only in an environment of its own, where types are not checked.
# mypy: disable-error-code="import-not-found, import-untyped, no-untyped-call, misc"
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import resweep
from resweep.testing import MemorySink

pytest.importorskip("qdrant_client")

from qdrant_client import AsyncQdrantClient, QdrantClient, models

pytestmark = pytest.mark.integration
POINTS = [
    models.PointStruct(
        id=i,
        vector=[1.0, i / 20, 0.0],
        payload={"text": f"text {i}", "source": f"{i}.md", "tenant": "acme" if i < 3 else "other"},
    )
    for i in range(20)
]
VECTORS = models.VectorParams(size=3, distance=models.Distance.COSINE)


@pytest.fixture
def sink() -> Iterator[MemorySink]:
    with resweep.testing.capture() as memory:
        yield memory


@pytest.fixture
def client() -> Iterator[Any]:
    made = QdrantClient(":memory:")
    made.create_collection("docs", vectors_config=VECTORS)
    made.upsert("docs", POINTS)
    yield made
    made.close()


def test_points_are_read_with_payload(sink: MemorySink, client: Any) -> None:
    """Same client back; ids, texts, sources and scores; the limit of the call is what was asked."""
    assert resweep.watch(client, sink=sink) is client
    assert isinstance(client, QdrantClient)
    assert len(client.query_points("docs", query=[1.0, 0.0, 0.0], limit=4).points) == 4
    (event,) = sink.events
    assert (event.asked, event.returned) == (4, 4)
    hit = event.hits[0]
    assert (hit.id, hit.source, hit.tokens) == ("0", "0.md", 2)
    assert hit.score == pytest.approx(1.0)
    assert event.query_key is not None


def test_a_limit_nobody_gave_is_the_clients_own(sink: MemorySink, client: Any) -> None:
    """query_points returns ten by itself."""
    resweep.watch(client, sink=sink).query_points("docs", query=[1.0, 0.0, 0.0])
    assert [(event.asked, event.returned) for event in sink.events] == [(10, 10)]


def test_a_filter_is_grouped_by_its_key(sink: MemorySink, client: Any) -> None:
    """The answer is short because of the tenant."""
    wanted = models.Filter(must=[models.FieldCondition(key="tenant", match=models.MatchValue(value="acme"))])
    resweep.watch(client, sink=sink)
    client.query_points("docs", query=[1.0, 0.0, 0.0], query_filter=wanted, limit=5)
    (window,) = sink.windows
    assert (window.groups["tenant"].short, window.groups["tenant"].returned) == (1, 3)


def test_a_batch_is_as_many_retrievals(sink: MemorySink, client: Any) -> None:
    """Two requests, two answers, two questions."""
    resweep.watch(client, sink=sink)
    requests = [models.QueryRequest(query=[1.0, at, 0.0], limit=3) for at in (0.0, 1.0)]
    client.query_batch_points("docs", requests=requests)
    assert [event.returned for event in sink.events] == [3, 3]


def test_fetching_by_id_is_no_retrieval(sink: MemorySink, client: Any) -> None:
    """`retrieve` and `scroll` of this client get points that are already known."""
    resweep.watch(client, sink=sink)
    client.retrieve("docs", ids=[1, 2])
    client.scroll("docs")
    assert sink.counts["retrievals"] == 0


async def test_the_async_client_is_watched_too(sink: MemorySink) -> None:
    """The same facts, awaited."""
    client = AsyncQdrantClient(":memory:")
    await client.create_collection("docs", vectors_config=VECTORS)
    await client.upsert("docs", POINTS)
    resweep.watch(client, sink=sink)
    await client.query_points("docs", query=[1.0, 0.0, 0.0], limit=4)
    await client.close()
    assert [(event.asked, event.returned) for event in sink.events] == [(4, 4)]
