"""An agent says which watched retrievers nobody calls, and whose answers show nothing."""

from __future__ import annotations

from resweep.domain.batch import Batch, ConfigRecord
from resweep.domain.window import Window
from resweep.serve.watches import GONE_S, UNCALLED_S, Watches

MINUTE = 60.0


def said(pipeline: str = "bot", **observed: object) -> Batch:
    record = ConfigRecord(pipeline=pipeline, config="c1", basis="b1", document={}, observed=observed)
    return Batch(writer="w", seq=1, ts=0.0, configs=[record])


def counted(pipeline: str = "bot") -> Batch:
    return Batch(writer="w", seq=2, ts=0.0, windows=[Window(pipeline, "c1", 0, {"retrievals": 1})])


def test_one_that_is_called_is_nothing_to_speak_of() -> None:
    """Nor is one that has just begun."""
    watches = Watches()
    watches.heard(said(), 0.0)
    assert list(watches.notes(UNCALLED_S - 1)) == []
    watches.heard(counted(), UNCALLED_S - 1)
    assert list(watches.notes(UNCALLED_S + 1)) == []


def test_one_that_nobody_calls_while_its_process_lives_is_told() -> None:
    """The process said its config again, without a call."""
    watches = Watches()
    watches.heard(said(), 0.0)
    watches.heard(said(), 10 * MINUTE)
    (note,) = watches.notes(16 * MINUTE)
    assert note.startswith("bot (c1): watched, and not called for 16 min so far")


def test_one_whose_process_ended_is_not() -> None:
    """It said nothing for longer than processes do."""
    watches = Watches()
    watches.heard(said(), 0.0)
    assert list(watches.notes(GONE_S)) == []


def test_what_no_answer_carried_is_told_until_one_does() -> None:
    """Recorders look at the first passages and say what was in none of them."""
    watches = Watches()
    watches.heard(said(missing="scores, sources"), 0.0)
    watches.heard(counted(), 0.0)
    (note,) = watches.notes(1.0)
    assert "no answer carried scores or sources" in note
    watches.heard(said(missing=""), 2.0)
    assert list(watches.notes(3.0)) == []
