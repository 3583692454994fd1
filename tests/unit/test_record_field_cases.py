"""What retrievers really return, as field reports tell it, recorded through `watch`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

import resweep
from resweep.domain.event import RetrievalEvent
from resweep.testing import MemorySink


@pytest.fixture
def sink() -> Iterator[MemorySink]:
    with resweep.testing.capture() as memory:
        yield memory


class FourOnly:
    """A store that never sees the k of its caller."""

    def __init__(self) -> None:
        self.search_kwargs = {"k": 20}

    def invoke(self, query: str, **kw: object) -> list[dict[str, object]]:
        return [{"id": f"d{i}", "text": "t", "score": 0.9 - i / 10} for i in range(4)]


def test_asked_20_always_got_4(sink: MemorySink) -> None:
    """50 records with 20 asked and 4 returned: all short, none empty."""
    retriever = resweep.watch(FourOnly(), sink=sink)
    for i in range(50):
        retriever.invoke(f"q{i}")
    assert [(event.asked, event.returned) for event in sink.events] == [(20, 4)] * 50
    counts = sink.counts
    assert (counts["short"], counts["empty_zero"], counts["ok"]) == (50, 0, 50)
    assert (counts["asked:20"], counts["returned:4"]) == (50, 50)


def test_a_filter_starves_its_own_group_alone(sink: MemorySink) -> None:
    """The group of the filter key holds 10 calls: 1 empty and 9 short, 40 passages of 100 asked."""

    def search(query: str, k: int = 10, filter: object = None, give: int = 10) -> list[str]:  # noqa: A002
        return [f"passage {i}" for i in range(give)]

    search = resweep.watch(search, sink=sink, config={"context_k": 10})
    for i in range(90):
        search(f"q{i}", k=10)
    for give in [4, 3, 5, 4, 2, 6, 4, 4, 0, 8]:
        search("q", k=10, filter={"tenant": "acme"}, give=give)
    groups = [window.groups for window in sink.windows if window.groups]
    assert {key for group in groups for key in group} == {"tenant"}
    total = [
        sum(getattr(g["tenant"], part) for g in groups)
        for part in ("n", "empty", "short", "returned", "asked")
    ]
    assert total == [10, 1, 9, 40, 100]
    assert sink.counts["passages"] == 940


def test_filter_values_are_veiled_where_content_is_off(sink: MemorySink) -> None:
    """A tenant's name is no number; equal names stay equal."""
    search: Any = resweep.watch(lambda q, where=None: ["x"], sink=sink)
    search("a", where={"tenant": "acme"})
    search("b", where={"tenant": "acme"})
    one, two = (event.filters for event in sink.events)
    assert one == two
    assert "acme" not in repr(one)


def test_scores_of_every_kind(sink: MemorySink) -> None:
    """0.8, "0.75" and a numpy 0.5 are valid; None is missing; NaN, infinity and True are invalid."""
    import numpy

    scores = [0.8, None, float("nan"), float("inf"), "0.75", numpy.float32(0.5), True]
    docs = [{"id": f"d{i}", "text": "t", "score": score} for i, score in enumerate(scores)]
    resweep.watch(lambda query: docs, sink=sink)("q")
    (event,) = sink.events
    counts = sink.counts
    assert event.returned == 7
    assert (counts["score_valid"], counts["score_missing"], counts["score_invalid"]) == (3, 1, 3)
    valid = [hit.score for hit in event.hits if hit.score is not None]
    assert valid == [0.8, 0.75, 0.5]
    json.loads(msgspec.json.encode(event), parse_constant=lambda name: pytest.fail(name))


def stream_of(made: list[int], fail_at: int | None = None) -> Any:
    def stream(query: str) -> Iterator[dict[str, object]]:
        for i in range(5):
            if i == fail_at:
                raise RuntimeError("the index went away")
            made.append(i)
            yield {"id": f"d{i}", "text": "x" * 10, "score": 1 - i / 10}

    return stream


def test_a_stream_is_not_read_ahead_and_closed_early_is_partial(sink: MemorySink) -> None:
    """After two items two were made; the closed stream is one partial record of two."""
    made: list[int] = []
    stream = resweep.watch(stream_of(made), sink=sink, config={"context_k": 5})(query="q")
    next(stream), next(stream)
    assert made == [0, 1]
    stream.close()
    (event,) = sink.events
    assert (event.returned, event.partial) == (2, True)
    assert [sink.counts[name] for name in ("partial", "ok", "short", "empty_zero")] == [1, 0, 0, 0]


def test_a_stream_to_its_end_is_whole(sink: MemorySink) -> None:
    """Five items, not partial."""
    list(resweep.watch(stream_of([]), sink=sink)("q"))
    assert [(event.returned, event.partial) for event in sink.events] == [(5, False)]


def test_a_stream_whose_source_raises_is_an_error(sink: MemorySink) -> None:
    """The same exception reaches the caller after three items."""
    got = []
    with pytest.raises(RuntimeError, match="the index went away"):
        for item in resweep.watch(stream_of([], fail_at=3), sink=sink)("q"):
            got.append(item)
    (event,) = sink.events
    assert event.error is not None
    assert (len(got), event.error.error_class, sink.counts["errors"]) == (3, "other", 1)
    assert event.returned == 3


def test_empty_is_not_broken(sink: MemorySink) -> None:
    """50 calls: 30 full, 10 empty, 5 None, 5 with the wrong vector size."""
    message = "Embedding dimension 768 does not match collection dimensionality 384"

    def retrieve(query: int) -> list[str] | None:
        if query < 30:
            return ["a", "b", "c"]
        if query < 45:
            return [] if query < 40 else None
        raise ValueError(message)

    retrieve = resweep.watch(retrieve, sink=sink)
    for i in range(45):
        retrieve(i)
    for i in range(45, 50):
        with pytest.raises(ValueError, match=message):
            retrieve(i)
    counts = sink.counts
    assert (counts["retrievals"], counts["errors"], counts["ok"]) == (50, 5, 45)
    assert (counts["empty_zero"], counts["empty_none"]) == (10, 5)
    assert (counts["error:dimension_mismatch"], counts["dim:768:384"]) == (5, 5)
    assert all(event.error is None or event.error.message is None for event in sink.events)


def test_the_same_passage_twice(sink: MemorySink) -> None:
    """Ten ids over five texts: ten returned, five distinct, the tokens of all ten."""
    docs = [{"id": f"n{i}", "text": f"text of passage {i // 2}"} for i in range(10)]
    resweep.watch(lambda query: docs, sink=sink, tokens=lambda text: len(text.split()))("q")
    (window,) = sink.windows
    assert (window.get("passages"), window.get("distinct_passages")) == (10, 5)
    assert window.histograms["context_tokens"].sum == 40
    assert not sink.events[0].tokens_estimated


ODD = [
    {"text": "a"},
    {"text": b"\xff\xfe\x00", "metadata": {"a": {"b": [1, {"c": 2}]}}},
    {"text": None, "metadata": None},
    {"text": "caf\u00e9"},
    {"text": "cafe\u0301"},
    {"text": "x" * 5_000_000},
    {"text": "bad \udc81"},
]


def test_documents_without_id_source_or_sane_text(sink: MemorySink) -> None:
    """Seven counted, ids from texts, no source, the long text cut and marked, all of it valid JSON."""
    returned = resweep.watch(lambda query: ODD, sink=sink, capture="sampled")("q")
    assert returned is ODD
    (event,) = sink.events
    assert event.returned == 7
    assert event.hits[3].id == event.hits[4].id
    assert len({hit.id for hit in event.hits}) == 6
    assert [hit.source for hit in event.hits] == [None] * 7
    assert "source_diversity_ratio" not in sink.windows[0].histograms
    long = event.hits[5].text
    assert long is not None
    assert long.endswith("… [cut: 5000000 characters]")
    body = msgspec.json.encode(event)
    assert len(body) < 1 << 20
    json.loads(body)


def test_ids_from_texts_are_equal_in_another_process(sink: MemorySink) -> None:
    """The hash of a text does not depend on the process."""
    resweep.watch(lambda query: ["caf\u00e9"], sink=sink)("q")
    code = "from resweep.domain.values import text_hash; print(text_hash('cafe\\u0301'))"
    other = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=_path()
    )
    assert other.stdout.strip() == sink.events[0].hits[0].id


def _path() -> dict[str, str]:
    return {"PYTHONPATH": ":".join(sys.path)}


def test_the_rerank_stage_decides_how_many_arrive(sink: MemorySink) -> None:
    """Candidates, reranked, returned and asked are four numbers; the cut is counted."""

    def retrieve(query: str, k: int) -> dict[str, object]:
        return {"documents": ["a", "b", "c"], "candidates": 100, "reranked": 64, "stages": {"rerank_s": 0.25}}

    resweep.watch(retrieve, sink=sink)("q", 10)
    (event,) = sink.events
    assert (event.candidates, event.reranked, event.returned, event.asked) == (100, 64, 3, 10)
    assert sink.counts["candidates_cut"] == 1
    assert sink.windows[0].histograms["rerank_duration_seconds"].sum == 0.25


def test_what_a_retriever_notes_while_it_runs_is_kept(sink: MemorySink) -> None:
    """`note` inside a retriever says what its answer does not."""

    def retrieve(query: str) -> list[str]:
        resweep.note(candidates=50, reranked=20, stop="gap")
        return ["a"]

    resweep.watch(retrieve, sink=sink)("q")
    (event,) = sink.events
    assert (event.candidates, event.reranked, event.stop) == (50, 20, "gap")


def test_late_double_and_reversed_feedback(sink: MemorySink) -> None:
    """Each word of a rater goes on as it came, with an id that a retry repeats."""
    retrieve: Any = resweep.watch(lambda query: ["a"], sink=sink)
    retrieve("q")
    event_id = resweep.current_event_id()
    for kind in ("positive", "negative", "negative"):
        assert resweep.feedback(event_id, kind, rater="u1")
    assert [one.kind for one in sink.feedback] == ["positive", "negative", "negative"]
    assert sink.feedback[1].id == sink.feedback[2].id
    assert sink.feedback[0].event_id == event_id


def test_a_lambda_in_the_config_is_opaque_and_stops_nothing(sink: MemorySink) -> None:
    """The config goes on without an address in it, and says that it is not complete."""
    config = {"tokenizer": lambda text: text.split(), "context_k": 5}
    resweep.watch(lambda query: ["a"], sink=sink, config=config)("q")
    record = sink.configs[-1]
    assert not record.complete
    assert record.opaque == ("tokenizer",)
    assert "0x" not in repr(record.document)


def test_names_unfit_for_a_label_are_mended(sink: MemorySink) -> None:
    """Half a surrogate pair, nothing, and 5,000 letters."""
    names: list[Any] = ["bad\udc81", None, "", "a" * 5000, "a" * 5001]
    for name in names:
        resweep.watch(lambda query: ["x"], sink=sink, pipeline=name)("q")
    seen = [event.pipeline for event in sink.events]
    assert seen[:3] == ["bad\ufffd", "unknown", "unknown"]
    assert seen[3] != seen[4]
    assert {len(name) for name in seen[3:]} == {64}


def test_text_only_where_it_is_wanted(sink: MemorySink) -> None:
    """With content off a planted secret is nowhere in what is handed over; every number is."""
    secret = "tango-7351-planted"

    def retrieve(query: str, where: object = None) -> list[dict[str, object]]:
        if query.endswith("fail"):
            raise RuntimeError(secret)
        return [{"id": "p1", "text": secret, "score": 0.5, "source": "a.md", "metadata": {"note": secret}}]

    retrieve = resweep.watch(retrieve, sink=sink)
    retrieve(secret, where={"user": secret})
    with pytest.raises(RuntimeError):
        retrieve(f"{secret} fail")
    sink.flush()
    assert secret not in "".join(msgspec.json.encode(batch).decode() for batch in sink.batches)
    event: RetrievalEvent = sink.events[0]
    assert (event.hits[0].tokens, event.hits[0].score, event.hits[0].source) == (5, 0.5, "a.md")


def test_a_redaction_that_fails_drops_the_text_alone(sink: MemorySink) -> None:
    """The event stays, its text is gone, and that is counted."""

    def redact(text: str) -> str:
        if "card" in text:
            raise ValueError(text)
        return text.replace("Ada", "NAME")

    retrieve: Any = resweep.watch(
        lambda query: ["of Ada", "a card"], sink=sink, capture="text", redact=redact
    )
    retrieve("Ada asks")
    (event,) = sink.events
    assert event.query == "NAME asks"
    assert [hit.text for hit in event.hits] == ["of NAME", None]
    sink.flush()
    assert sink.counts["dropped:redaction"] == 1
