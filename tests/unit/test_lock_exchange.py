"""Between store and lock file: what is carried over, and where the two disagree."""

from __future__ import annotations

from dataclasses import replace

from resweep.domain.verdict import TunedK
from resweep.store.exchange import disagreements, pull, push
from resweep.store.lockfile import LockFile

HERE = TunedK(pipeline="bot", basis="b1", context_k=8, tuned_at=100.25, parts={"reranker": None})
SWEPT = replace(HERE, context_k=12, tuned_by="sweep")
NEW = TunedK(pipeline="bot", basis="b2", context_k=5)


def test_pull_brings_the_store_into_the_file() -> None:
    """What is in the file alone stays; what was different is listed."""
    pulled = pull(LockFile(entries=(HERE,), text="# mine"), [SWEPT, NEW])
    assert pulled.lock == LockFile(entries=(SWEPT, NEW), text="# mine")
    assert pulled.changed == (SWEPT, NEW)
    assert [(d.name, d.in_lock, d.in_store) for d in pulled.disagreements] == [
        ("context_k", 8, 12),
        ("tuned_by", None, "sweep"),
    ]


def test_push_gives_the_store_what_it_lacks_or_has_differently() -> None:
    """What is in the store alone stays there."""
    assert push(LockFile(entries=(HERE, NEW)), [SWEPT]).records == (HERE, NEW)
    assert push(LockFile(entries=(HERE,)), [HERE, NEW]).records == ()


def test_a_disagreement_reads_as_a_sentence() -> None:
    """It names the entry and both sides."""
    (first, _) = disagreements([HERE], [SWEPT])
    assert str(first) == ("bot, basis b1, epoch 1: context_k is 8 in the lock file and 12 in the store")


def test_what_a_file_cannot_hold_is_no_disagreement() -> None:
    """Fractions of a second and nulls are lost on the way, and nobody minds."""
    assert disagreements([replace(HERE, tuned_at=100.0, parts={})], [HERE]) == ()


def test_epochs_are_kept_apart() -> None:
    """A re-sweep after a silent change is another record."""
    assert push(LockFile(entries=(HERE, replace(SWEPT, epoch=2))), [HERE]).records == (
        replace(SWEPT, epoch=2),
    )
