"""FAISS's own indexes, watched."""

# The library is only in an environment of its own, where types are not checked.
# mypy: disable-error-code="import-not-found, import-untyped, no-untyped-call, misc"
from __future__ import annotations

from collections.abc import Iterator

import pytest

import resweep
from resweep.testing import MemorySink

faiss = pytest.importorskip("faiss")

import numpy  # noqa: E402

pytestmark = pytest.mark.integration
VECTORS = numpy.eye(8, dtype="float32")


@pytest.fixture
def sink() -> Iterator[MemorySink]:
    with resweep.testing.capture() as memory:
        yield memory


def test_each_row_is_a_retrieval(sink: MemorySink) -> None:
    """Two vectors asked at once are two retrievals, with row numbers as ids and scores."""
    index = faiss.IndexFlatIP(8)
    index.add(VECTORS)
    assert resweep.watch(index, sink=sink) is index
    scores, rows = index.search(VECTORS[:2], 3)
    assert (scores.shape, rows[0][0]) == ((2, 3), 0)
    events = sink.events
    assert [(event.asked, event.returned) for event in events] == [(3, 3), (3, 3)]
    assert (events[0].hits[0].id, events[0].hits[0].score) == ("0", 1.0)
    assert events[0].query_key != events[1].query_key
    observed = sink.configs[-1].observed
    assert (observed["dimensions"], observed["metric"], observed["count"]) == (8, "inner_product", 8)


def test_rows_that_do_not_exist_are_not_returned(sink: MemorySink) -> None:
    """An index of two gives two of five asked."""
    index = faiss.IndexFlatL2(8)
    index.add(VECTORS[:2])
    resweep.watch(index, sink=sink).search(VECTORS[:1], 5)
    (event,) = sink.events
    assert (event.asked, event.returned) == (5, 2)
    assert sink.counts["short"] == 1


def test_a_wrong_vector_size_is_an_error_and_unwatch_restores(sink: MemorySink) -> None:
    """The assertion of FAISS reaches the caller; afterwards nothing is recorded."""
    index = resweep.watch(faiss.IndexFlatL2(8), sink=sink)
    with pytest.raises(AssertionError):
        index.search(numpy.zeros((1, 4), dtype="float32"), 1)
    assert sink.counts["errors"] == 1
    resweep.unwatch(index)
    assert type(index) is faiss.IndexFlatL2
