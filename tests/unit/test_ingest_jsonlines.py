"""`resweep.event/1` lines: what is read, what defaults, what is refused and how it is told."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from resweep.domain.batch import ConfigRecord
from resweep.domain.errors import InputError
from resweep.domain.event import ErrorInfo, Feedback, event_id
from resweep.ingest.jsonlines import BadLine, EventLine, Item, LineReader, feedback_of, lines_of, timestamp
from resweep.shipped import invalidation_rules

EVENT = {"type": "event", "id": "e1", "ts": 10.5, "pipeline": "bot", "asked": 8, "hits": [{"id": "p1"}]}


def read(*rows: object) -> list[Item]:
    lines = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
    return list(LineReader(invalidation_rules()).read(lines))


def event(**fields: object) -> EventLine:
    (item,) = read({**EVENT, **fields})
    assert isinstance(item, EventLine), item
    return item


def test_a_plain_event_is_read() -> None:
    """Time, pipeline, depth and hits arrive as they were sent."""
    e = event().event
    assert (e.id, e.ts, e.pipeline, e.asked, e.returned, [h.id for h in e.hits]) == (
        "e1",
        10.5,
        "bot",
        8,
        1,
        ["p1"],
    )


def test_returned_defaults_to_the_smaller_of_asked_and_hits() -> None:
    """Hits beyond the asked depth are probe material."""
    assert event(asked=1, hits=[{"id": "a"}, {"id": "b"}]).event.returned == 1
    assert event(asked=1, returned=2, hits=[{"id": "a"}, {"id": "b"}]).event.returned == 2
    assert event(asked=None, hits=[{"id": "a"}, {"id": "b"}]).event.returned == 2


def test_no_hits_at_all_is_not_an_empty_list() -> None:
    """`null` is kept apart from `[]`."""
    assert event(hits=None).event.returned_none
    assert not event(hits=[]).event.returned_none


def test_both_ways_of_reading_agree() -> None:
    """A line with an unknown field takes the slow way and gives the same event."""
    hit = {"id": "p", "score": 0.5, "kind": "rerank", "retriever_score": 0.4, "source": "s", "tokens": 5}
    full = {
        "hits": [{**hit, "text_hash": "h"}],
        "query": "q",
        "candidates": 50,
        "reranked": 20,
        "filters": {"t": "x"},
        "latency_s": 0.1,
        "stages": {"rerank_s": 0.01},
        "partial": False,
        "error": None,
        "stop": None,
        "trace_id": "t",
    }
    assert event(**full) == event(**full, surprise=1)


def test_unknown_fields_are_counted_by_name() -> None:
    """Ignored, but not in silence."""
    reader = LineReader(invalidation_rules())
    list(reader.read([json.dumps({**EVENT, "extra": 1}).encode()] * 3))
    assert reader.unknown_fields == {"extra": 3}


def test_a_config_line_stands_for_the_events_that_follow() -> None:
    """Events of the pipeline that name no config take the last declared one."""
    config, before, other = read(
        {"type": "config", "pipeline": "bot", "config": {"embedder": {"model": "m1"}, "context_k": 8}},
        EVENT,
        {**EVENT, "pipeline": "else"},
    )
    assert isinstance(config, ConfigRecord)
    assert isinstance(before, EventLine)
    assert isinstance(other, EventLine)
    assert (before.event.config, other.event.config) == (config.config, "unknown")


def test_an_event_id_describes_its_config() -> None:
    """Where nothing else says it, the id does."""
    assert event(id=event_id(1_796_000_000_000, 7, "9f2c0a417be1")).event.config == "9f2c0a417be1"


def test_a_named_config_hash_wins() -> None:
    """A whole digest is cut to the id used everywhere."""
    assert event(config_hash="ab" * 32).event.config == "ab" * 6


def test_scores_of_every_kind() -> None:
    """Numbers in text are numbers; NaN, infinity, booleans and other text are invalid, null is missing."""
    line = (
        b'{"type":"event","id":"e","ts":1,"pipeline":"p","hits":[{"id":"a","score":0.8},{"id":"b","score":null},'
        b'{"id":"c","score":NaN},{"id":"d","score":Infinity},{"id":"e","score":"0.75"},{"id":"f","score":true},{"id":"g","score":"x"}]}'
    )
    (item,) = read(line)
    assert isinstance(item, EventLine)
    assert [(h.score, h.score_state) for h in item.event.hits] == [
        (0.8, "ok"),
        (None, "missing"),
        (None, "invalid"),
        (None, "invalid"),
        (0.75, "ok"),
        (None, "invalid"),
        (None, "invalid"),
    ]


def test_an_error_keeps_its_class_and_the_vector_sizes() -> None:
    """The class comes from a fixed list; a dimension mismatch says which sizes met."""
    item = event(
        error={"class": "ValueError", "message": "dimension 768 does not match dimensionality 384"}, hits=None
    )
    assert (item.event.error, item.sizes) == (
        ErrorInfo("dimension_mismatch", "dimension 768 does not match dimensionality 384"),
        (768, 384),
    )


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"{", "JSON object on one line"),
        (b"[1]", "expected a JSON object; got list"),
        (b'{"type":"thing"}', '"type" to be'),
        (b'{"type":"event","ts":1,"pipeline":"p"}', '"id" and "pipeline"'),
        (b'{"type":"event","id":"e","ts":"yesterday","pipeline":"p"}', "ISO 8601"),
        (b'{"type":"event","id":"e","ts":1,"pipeline":"p","asked":-1}', '"asked" to be a whole number'),
        (b'{"type":"event","id":"e","ts":1,"pipeline":"p","hits":{"a":1}}', '"hits" to be a list'),
        (b'{"type":"config","pipeline":"p","config":3}', "a config line with"),
        (b'{"type":"feedback","event_id":"e","kind":"meh","ts":1}', "kind 'meh'"),
        (b"\xff\xfe", "JSON"),
        (b"[" * 100_000, "JSON"),
    ],
)
def test_a_bad_line_is_told_with_its_number_and_the_rest_goes_in(line: bytes, why: str) -> None:
    """The recording is not lost for one line."""
    good, bad, also = read(EVENT, line, EVENT)
    assert isinstance(good, EventLine)
    assert isinstance(also, EventLine)
    assert isinstance(bad, BadLine)
    assert bad.line == 2
    assert why in bad.reason


def test_times_are_unix_seconds_or_iso_8601() -> None:
    """UTC where no zone is given."""
    written = ("1970-01-01T00:01:00Z", "1970-01-01T01:01:00+01:00", "1970-01-01T00:01")
    assert [timestamp(v) for v in (60, 60.0, *written)] == [60.0] * 5


def test_feedback_without_an_id_gets_one_that_repeats() -> None:
    """The same thing said again by the same rater is the same feedback."""
    raw = {"event_id": "e", "kind": "negative", "rater": "u", "ts": 5}
    assert feedback_of(raw) == Feedback("e/negative/u", "e", "negative", "u", 5.0)


def test_gzip_is_told_by_content_not_by_name(tmp_path: Path) -> None:
    """`.jsonl` and `.jsonl.gz` read alike."""
    plain, packed = tmp_path / "a.jsonl", tmp_path / "b.data"
    plain.write_bytes(b"1\n2\n")
    packed.write_bytes(gzip.compress(b"1\n2\n"))
    assert list(lines_of(plain)) == list(lines_of(packed)) == [b"1\n", b"2\n"]


def test_a_cut_gzip_gives_what_it_held_and_then_says_so(tmp_path: Path) -> None:
    """What came before the break is not lost."""
    path = tmp_path / "cut.gz"
    path.write_bytes(gzip.compress(b"".join(b"%d\n" % i for i in range(100_000)))[:-2000])
    seen: list[bytes] = []
    with pytest.raises(InputError, match="breaks off"):
        for line in lines_of(path):
            seen.append(line)
    assert seen[:2] == [b"0\n", b"1\n"]


def test_a_missing_file_is_told_with_its_path(tmp_path: Path) -> None:
    """What was expected, what came, what to do."""
    with pytest.raises(InputError, match="check the path"):
        list(lines_of(tmp_path / "nothing.jsonl"))


def test_the_users_pseudonym_is_read_either_way() -> None:
    """By it a user's events are found again and deleted; an empty one is none."""
    assert event(user_key="u-17").event.user_key == "u-17"
    assert event(user_key="u-17", more=1).event.user_key == "u-17"
    assert event(user_key="").event.user_key is None
