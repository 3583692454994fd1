"""LanceDB's own tables, watched."""

# The library is only in an environment of its own, where types are not checked.
# mypy: disable-error-code="import-not-found, import-untyped, no-untyped-call, misc"
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import resweep
from resweep.testing import MemorySink

lancedb = pytest.importorskip("lancedb")

pytestmark = pytest.mark.integration
ROWS = [
    {"id": f"d{i}", "text": f"text {i}", "source": f"{i}.md", "vector": [1.0, i / 20, 0.0]} for i in range(20)
]


@pytest.fixture
def sink() -> Iterator[MemorySink]:
    with resweep.testing.capture() as memory:
        yield memory


@pytest.fixture
def table(tmp_path: Path) -> Any:
    return lancedb.connect(str(tmp_path)).create_table("docs", ROWS)


@pytest.mark.parametrize("run", ["to_list", "to_arrow", "to_pandas"])
def test_a_search_counts_when_its_rows_are_asked_for(sink: MemorySink, table: Any, run: str) -> None:
    """Once, however the rows are had; the limit is what was asked; ids, sources and distances are read."""
    assert resweep.watch(table, sink=sink) is table
    search = table.search([1.0, 0.0, 0.0]).limit(4)
    assert sink.counts["retrievals"] == 0
    assert len(getattr(search, run)()) == 4
    (event,) = sink.events
    assert (event.asked, event.returned) == (4, 4)
    hit = event.hits[0]
    assert (hit.id, hit.source, hit.kind, hit.score) == ("d0", "0.md", "distance", 0.0)
    assert event.query_key is not None
    assert sink.configs[-1].observed["collection"] == "docs"


def test_a_limit_nobody_gave_is_lancedbs_own(sink: MemorySink, table: Any) -> None:
    """Ten rows."""
    resweep.watch(table, sink=sink).search([1.0, 0.0, 0.0]).to_list()
    assert [(event.asked, event.returned) for event in sink.events] == [(10, 10)]


def test_unwatch_restores_the_original(sink: MemorySink, table: Any) -> None:
    """Nothing is recorded any more, not even by a search begun before."""
    kind = type(table)
    resweep.watch(table, sink=sink)
    begun = table.search([1.0, 0.0, 0.0])
    resweep.unwatch(table)
    begun.to_list()
    assert type(table) is kind
    assert sink.counts["retrievals"] == 0
