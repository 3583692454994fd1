"""LlamaIndex's own classes, watched."""

# The library is only in an environment of its own, where types are not checked.
# mypy: disable-error-code="import-not-found, import-untyped, no-untyped-call, misc"
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import resweep
from resweep.testing import MemorySink

pytest.importorskip("llama_index.core")

from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.retrievers import BaseRetriever, VectorIndexRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

pytestmark = pytest.mark.integration


@pytest.fixture
def sink() -> Iterator[MemorySink]:
    with resweep.testing.capture() as memory:
        yield memory


@pytest.fixture(scope="module")
def index() -> Any:
    nodes = [TextNode(id_=f"n{i}", text=f"text {i}", metadata={"file_name": f"{i}.md"}) for i in range(20)]
    return VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=8))


def test_a_retriever_stays_one_and_says_its_k(sink: MemorySink, index: Any) -> None:
    """Same object and class; ids, sources and scores are read; k is the retriever's own."""
    retriever = index.as_retriever(similarity_top_k=5)
    assert resweep.watch(retriever, sink=sink) is retriever
    assert isinstance(retriever, VectorIndexRetriever)
    assert len(retriever.retrieve("q")) == 5
    (event,) = sink.events
    assert (event.asked, event.returned) == (5, 5)
    hit = event.hits[0]
    assert hit.id.startswith("n")
    assert hit.source is not None
    assert hit.source.endswith(".md")
    assert hit.score is not None
    record = sink.configs[-1]
    assert (record.observed["framework"], record.observed["k"]) == ("llamaindex", 5)
    assert record.default_k is None


async def test_both_ways_to_ask_count_once(sink: MemorySink, index: Any) -> None:
    """retrieve with text or a bundle, and aretrieve."""
    retriever = resweep.watch(index.as_retriever(), sink=sink)
    retriever.retrieve("q")
    retriever.retrieve(QueryBundle("q"))
    await retriever.aretrieve("q")
    events = sink.events
    assert [event.returned for event in events] == [2, 2, 2]
    assert len({event.query_key for event in events}) == 1
    assert sink.configs[-1].default_k == 2


def test_a_custom_retriever_is_watched(sink: MemorySink) -> None:
    """A class of the user's own that only has `_retrieve`; a node without a score has none."""

    class Mine(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            return [NodeWithScore(node=TextNode(id_="a", text="t"), score=None)]

    retriever = resweep.watch(Mine(), sink=sink)
    assert retriever.retrieve("q")[0].node.node_id == "a"
    (event,) = sink.events
    assert (event.hits[0].id, event.hits[0].score, event.hits[0].score_state) == ("a", None, "missing")


def test_an_engine_shows_its_stages(sink: MemorySink, index: Any) -> None:
    """Candidates of the retriever, nodes into the postprocessor, source nodes of the answer."""
    engine = index.as_query_engine(
        similarity_top_k=6,
        llm=MockLLM(),
        node_postprocessors=[SimilarityPostprocessor(similarity_cutoff=2.0)],
    )
    resweep.watch(engine, sink=sink).query("q")
    (event,) = sink.events
    assert (event.candidates, event.reranked, event.returned) == (6, 6, 0)
    assert set(event.stages) == {"retrieve_s", "rerank_s"}


def test_unwatch_restores_the_original(sink: MemorySink, index: Any) -> None:
    """Nothing is recorded any more."""
    retriever = index.as_retriever()
    resweep.unwatch(resweep.watch(retriever, sink=sink)).retrieve("q")
    assert type(retriever) is VectorIndexRetriever
    assert sink.counts["retrievals"] == 0
