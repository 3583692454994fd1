"""Feedback that is late, doubled, reversed or for a retrieval nobody knows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from resweep.domain.clock import VirtualClock
from resweep.domain.errors import InputError
from resweep.domain.event import Feedback, FeedbackKind, RetrievalEvent, event_id
from resweep.domain.window import Window
from resweep.store.sql import SqlStore

A, B = "aaaaaaaaaaaa", "bbbbbbbbbbbb"
Post = Callable[..., bool]


def at(day: int, hour: int = 10, minute: int = 0, second: int = 0) -> float:
    """Return a moment of May 2026."""
    return datetime(2026, 5, day, hour, minute, second, tzinfo=UTC).timestamp()


def told(event: str, kind: FeedbackKind, ts: float, id_: str = "f", rater: str | None = None) -> Feedback:
    """Return one word of feedback."""
    return Feedback(id_, event, kind, rater, ts)


def event(ts: float, config: str = A, number: int = 1) -> str:
    """Return the id of a retrieval."""
    return event_id(int(ts * 1000), number, config)


def traffic(ts: float, config: str = A, pipeline: str = "bot", n: int = 10) -> Window:
    """Return a minute of traffic."""
    return Window(pipeline, config, int(ts // 60), {"retrievals": n, "ok": n})


def standing(store: SqlStore, config: str = A, pipeline: str = "bot") -> dict[str, int]:
    """Return the feedback that stands for a config, from its day windows."""
    days = [w for w in store.days(pipeline, 0, 2**40) if w.config == config]
    names = {n for w in days for n in w.counts if n.startswith("feedback:")}
    return {n.removeprefix("feedback:"): sum(w.get(n) for w in days) for n in names}


def counted(store: SqlStore, config: str = A) -> dict[str, float]:
    """Return the feedback counters of a config that are above 0."""
    samples = [s for s in store.snapshot().samples if s.metric == "resweep_feedback_total"]
    return {s.labels[2]: float(s.value) for s in samples if s.labels[1] == config and s.value}  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _may(clock: VirtualClock) -> None:
    clock.ts = at(1, 10, 5)


def test_the_whole_story(store: SqlStore, post: Post, clock: VirtualClock) -> None:
    """Up then down, a retry, an unknown retrieval, and a word nine days late, after a change of config."""
    r1, r7, later = event(at(1, 9), number=1), event(at(1, 9, 30), number=7), "r-later"
    post(store, windows=[traffic(at(1, 9))])
    words = [
        told(r1, "positive", at(1, 10, 0, 1), "f1"),
        told(r1, "negative", at(1, 10, 0, 9), "f2"),
        told(r1, "negative", at(1, 10, 0, 9), "f2"),
        told(later, "positive", at(1, 10, 1), "f3"),
    ]
    assert [store.add_feedback([word]) for word in words] == [1, 1, 0, 1]
    clock.ts = at(10, 8, 1)
    post(store, windows=[traffic(at(10, 8), B)])
    assert store.add_feedback([told(r7, "negative", at(10, 8), "f4")]) == 1

    assert standing(store) == {"negative": 2}
    assert standing(store, B) == {}
    assert [w.get("feedback:negative") for w in store.days("bot", 0, 2**40) if w.config == A] == [2]
    assert [(f.id, f.kind, f.stands) for f in store.feedback_of(r1)] == [
        ("f1", "positive", False),
        ("f2", "negative", True),
    ]
    assert [f.config for f in store.feedback_of(later)] == [None]

    post(store, events=[RetrievalEvent(id=later, ts=at(1, 10), pipeline="bot", config=A)])
    assert [(f.config, f.stands) for f in store.feedback_of(later)] == [(A, True)]
    assert standing(store) == {"negative": 2, "positive": 1}


def test_counters_never_fall(store: SqlStore, post: Post) -> None:
    """A changed mind is one up and one down in the counters, and one down in the windows."""
    post(store, windows=[traffic(at(1))])
    e = event(at(1))
    store.add_feedback([told(e, "positive", at(1, 10, 1))])
    assert counted(store) == {"positive": 1}
    store.add_feedback([told(e, "negative", at(1, 10, 2))])
    assert counted(store) == {"positive": 1, "negative": 1}
    assert standing(store) == {"negative": 1}


def test_the_last_word_stands_whatever_comes_first(store: SqlStore, post: Post) -> None:
    """Delivery out of order changes nothing."""
    post(store, windows=[traffic(at(1))])
    e = event(at(1))
    store.add_feedback([told(e, "negative", at(1, 10, 2)), told(e, "positive", at(1, 10, 1))])
    assert standing(store) == {"negative": 1}


def test_a_mind_changed_back_stands_again(store: SqlStore, post: Post) -> None:
    """Up, down, up ends as up, and is counted once each."""
    post(store, windows=[traffic(at(1))])
    e = event(at(1))
    words = [("positive", 1), ("negative", 2), ("positive", 3)]
    taken = [store.add_feedback([told(e, k, at(1, 10, m))]) for k, m in words]  # type: ignore[arg-type]
    assert taken == [1, 1, 0]
    assert standing(store) == {"positive": 1}
    assert counted(store) == {"positive": 1, "negative": 1}


def test_raters_do_not_overrule_each_other(store: SqlStore, post: Post) -> None:
    """Two people, two words."""
    post(store, windows=[traffic(at(1))])
    e = event(at(1))
    store.add_feedback([told(e, "positive", at(1), rater="u1"), told(e, "negative", at(1), rater="u2")])
    assert standing(store) == {"positive": 1, "negative": 1}


def test_what_is_no_vote_stands_beside_one(store: SqlStore, post: Post) -> None:
    """An escalated answer was escalated, whatever was thought of it."""
    post(store, windows=[traffic(at(1))])
    e = event(at(1))
    store.add_feedback([told(e, k, at(1)) for k in ("escalated", "not_found", "positive")])
    assert standing(store) == {"escalated": 1, "not_found": 1, "positive": 1}


def test_feedback_before_its_config_is_attached_when_it_comes(store: SqlStore, post: Post) -> None:
    """A word may overtake the batch with the traffic it is about."""
    store.add_feedback([told(event(at(1)), "positive", at(1))])
    assert store.pipelines() == []
    post(store, windows=[traffic(at(1))])
    assert standing(store) == counted(store) == {"positive": 1}


def test_a_batch_may_bring_a_retrieval_and_its_feedback(store: SqlStore, post: Post) -> None:
    """In one transaction, once."""
    e = event(at(1))
    post(store, windows=[traffic(at(1))], feedback=[told(e, "corrected", at(1))])
    assert counted(store) == {"corrected": 1}


def test_counts_of_feedback_in_windows_are_not_added(store: SqlStore, post: Post) -> None:
    """Feedback counts from its own records alone, or it would count twice."""
    one = traffic(at(1))
    one.add("feedback:positive", 5)
    post(store, windows=[one], feedback=[told(event(at(1)), "positive", at(1))])
    assert standing(store) == counted(store) == {"positive": 1}


def test_unknown_feedback_expires_and_is_counted(store: SqlStore, clock: VirtualClock) -> None:
    """What never finds its retrieval goes after the configured days."""
    store.add_feedback([told("nobody-knows", "positive", at(1))])
    clock.advance(6 * 86400)
    assert store.housekeep().feedback_expired == 0
    clock.advance(2 * 86400)
    assert store.housekeep().feedback_expired == 1
    assert store.tallies() == {"feedback_expired": 1}


def test_an_id_from_the_future_is_kept_aside(store: SqlStore, post: Post) -> None:
    """Nobody can count in next year's windows by inventing ids."""
    post(store, windows=[traffic(at(1))])
    store.add_feedback([told(event(at(1) + 400 * 86400), "positive", at(1))])
    assert standing(store) == {}


def test_pipelines_with_one_config_get_the_feedback_of_their_own_traffic(store: SqlStore, post: Post) -> None:
    """The busier one of that hour, where the id alone cannot tell."""
    post(store, windows=[traffic(at(1), pipeline="quiet", n=1), traffic(at(1), pipeline="busy", n=9)])
    store.add_feedback([told(event(at(1)), "negative", at(1))])
    assert standing(store, pipeline="busy") == {"negative": 1}
    assert standing(store, pipeline="quiet") == {}


def test_feedback_is_read_by_the_minute_of_its_retrieval(store: SqlStore, post: Post) -> None:
    """Not by when it was given."""
    post(store, windows=[traffic(at(1))])
    store.add_feedback([told(event(at(1)), "positive", at(1, 10, 4))])
    minute = int(at(1) // 60)
    assert [f.minute for f in store.feedback("bot", minute, minute + 1)] == [minute]


def test_bad_feedback_is_refused_whole(store: SqlStore) -> None:
    """One that cannot be kept refuses its call."""
    bad = told("e", "praised", at(1))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="praised"):
        store.add_feedback([told("e", "positive", at(1)), bad])
    assert store.feedback_of("e") == []


def test_what_a_rater_said_can_be_removed(store: SqlStore, post: Post) -> None:
    """By the rater's key, and by the event's id."""
    post(store, windows=[traffic(at(1))])
    e = event(at(1))
    store.add_feedback([told(e, "positive", at(1), rater="u1"), told(e, "positive", at(1), rater="u2")])
    assert store.delete_rater("u1") == 1
    assert [f.rater for f in store.feedback_of(e)] == ["u2"]
    store.delete_events([e])
    assert store.feedback_of(e) == []
