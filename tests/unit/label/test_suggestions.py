"""Suggestions of a model: asked of what waits, within a budget, shown, and never counted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from resweep.domain.case import Candidate, question_key
from resweep.domain.clock import VirtualClock
from resweep.domain.errors import UsageError
from resweep.domain.event import Hit
from resweep.domain.values import text_hash
from resweep.label.suggesting import Opinion, Suggester
from resweep.schedule.suggestdesk import SuggestDesk
from resweep.serve.suggesters import opinion_in, opinion_of, suggester
from resweep.settings import LabelSection
from resweep.store import open_store
from resweep.store.sql import SqlStore
from resweep.sweep.calls import CallFailedError

NOW = 1_796_000_000.0


@pytest.fixture(name="store")
def _store(tmp_path: Path) -> Iterator[SqlStore]:
    """Give a store with three cases of four passages."""
    opened = open_store(str(tmp_path / "resweep.db"), clock=VirtualClock(NOW))
    hits = tuple(Hit(f"p{n}", text=f"text {n}", text_hash=text_hash(f"text {n}")) for n in range(4))
    asked = [f"what about topic {n}" for n in range(3)]
    opened.enqueue([Candidate(pipeline="bot", question=question_key(q), query=q, hits=hits) for q in asked])
    yield opened
    opened.close()


def even(question: str, passage: str) -> Opinion:
    """Say of every other passage that it answers."""
    return Opinion(1.0 - int(passage[-1]) % 2, "it says so")


def desk(store: SqlStore, per_hour: float = 200.0, depth: int = 3) -> SuggestDesk:
    """Give a desk whose time stands still."""
    return SuggestDesk(store, Suggester("m", even, per_hour, depth), VirtualClock(NOW), lambda: 0.0)


def test_what_waits_is_asked_about_once_and_counts_for_nothing(store: SqlStore) -> None:
    """Three cases, the first three passages each; no case is judged by it."""
    at = desk(store)
    assert (at.run(), at.run()) == (9, 0)
    for row in store.case_page():
        view = store.case(row.case_id)
        assert {s.passage_id: s.grade for s in view.suggestions} == {"p0": 1.0, "p1": 0.0, "p2": 1.0}
        assert (view.case.state, view.judgments, view.reviews) == ("candidate", (), ())
    assert all(not line.judgments for line in store.case_lines())


def test_a_run_keeps_to_the_budget(store: SqlStore) -> None:
    """Six passages an hour: six at once, then none until time goes on."""
    at = desk(store, per_hour=6.0)
    assert (at.run(), at.run()) == (1, 0)


def test_a_model_that_fails_costs_its_suggestions_alone(store: SqlStore) -> None:
    """Three failures in a row end the run with the model's own error, for the job to tell of."""

    def broken(question: str, passage: str) -> Opinion:
        raise CallFailedError("no answer")

    at = SuggestDesk(store, Suggester("m", broken, 200.0, 3), VirtualClock(NOW), lambda: 0.0)
    with pytest.raises(CallFailedError, match="no answer"):
        at.run()
    assert all(store.case(row.case_id).suggestions == () for row in store.case_page())


def test_agreement_is_counted_and_apart_for_who_judged_blind(store: SqlStore) -> None:
    """p0 as suggested, p1 otherwise."""
    case_id = store.case_page()[0].case_id
    desk(store).run()
    store.judge(case_id, "anna", "p0", 1.0)
    store.judge(case_id, "anna", "p1", 1.0)
    found = store.agreement("bot")
    assert (found.n, found.agree, found.blind) == (2, 1, 0)


@pytest.mark.parametrize(
    ("said", "opinion"),
    [
        (True, Opinion(1.0)),
        (0, Opinion(0.0)),
        ((2, "all of it"), Opinion(2.0, "all of it")),
        ({"answers": False, "reason": "no"}, Opinion(0.0, "no")),
        ({"grade": 1.0}, Opinion(1.0)),
    ],
)
def test_a_callable_answers_in_any_plain_form(said: object, opinion: Opinion) -> None:
    """A bool, a grade, one with a reason, a mapping."""
    assert opinion_of(said) == opinion


@pytest.mark.parametrize("said", [None, "yes", float("nan"), -1, {}, (1, 2, 3)])
def test_anything_else_is_an_error(said: object) -> None:
    """It is never taken for a no."""
    with pytest.raises(CallFailedError, match="expected true, false or a grade"):
        opinion_of(said)


def test_an_endpoint_answers_in_json_somewhere_in_its_text() -> None:
    """Prose around it does not matter; prose alone is an error."""
    assert opinion_in('Well: {"reason": "states it", "answers": true}') == Opinion(1.0, "states it")
    with pytest.raises(CallFailedError, match="from the judge"):
        opinion_in("It does.")


def test_a_name_that_is_no_function_is_refused() -> None:
    """At the start, not in the first run."""
    with pytest.raises(UsageError, match="expected a function"):
        suggester(LabelSection(judge="math:pi"))
