"""The short way to count an answer counts what the long way counts, whatever the passages are."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from resweep.domain.event import RetrievalEvent
from resweep.domain.fold import fold
from resweep.domain.window import Window
from resweep.record.hits import Hits
from resweep.record.lean import Lean
from resweep.record.plain import Plain
from resweep.record.reading import read
from resweep.record.shape import Glance
from resweep.record.tokens import Tokens

scores = st.one_of(
    st.none(), st.booleans(), st.floats(), st.integers(-5, 5), st.sampled_from(["0.5", "x", 0.25, 0.5])
)
texts = st.one_of(st.none(), st.sampled_from(["a", "b c", "b  c", "caf\u00e9", "cafe\u0301", b"b", ""]))
sources = st.one_of(st.none(), st.sampled_from(["s1", "s2", "", 3, ["s"]]))
metadata = st.fixed_dictionaries(
    {},
    optional={"source": sources, "score": scores, "relevance_score": scores, "title": sources, "id": texts},
)


class Document:
    def __init__(self, fields: dict[str, Any]) -> None:
        self.__dict__.update(fields)


passages = st.one_of(
    st.fixed_dictionaries(
        {}, optional={"id": texts, "text": texts, "score": scores, "source": sources, "metadata": metadata}
    ),
    st.fixed_dictionaries({"page_content": texts, "metadata": metadata}, optional={"id": texts}).map(
        Document
    ),
    st.tuples(st.sampled_from(["long text here", "id1"]), scores),
    texts,
)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.lists(passages, max_size=6), max_size=8), st.one_of(st.none(), st.integers(1, 8)))
def test_counting_in_bulk_equals_folding_events(answers: list[list[Any]], asked: int | None) -> None:
    """Counts, histograms and sums are equal, answer by answer and all together."""
    slow, quick, plain = Window("p", "c", 0), Window("p", "c", 0), Plain()
    hits = Hits(Tokens())
    lean = Lean(hits)
    for answer in answers:
        found = hits.of(answer)[0]
        fold(slow, RetrievalEvent("", 0.0, "p", "c", asked, len(answer), found, latency_s=0.25))
        plain.add(asked, len(answer), 0.25, lean.totals(answer) if answer else None)
    plain.into(quick)
    assert {k: v for k, v in slow.counts.items() if v} == {k: v for k, v in quick.counts.items() if v}
    assert slow.histograms == quick.histograms


@settings(max_examples=400, deadline=None)
@given(st.lists(passages, max_size=12))
def test_a_glance_reads_what_reading_with_care_reads(found: list[Any]) -> None:
    """Whatever passages came before, each is read as if it had come alone."""
    glance = Glance()
    assert repr([glance(passage) for passage in found]) == repr([read(passage) for passage in found])
