"""Two answers to one question: same, rescaled, renumbered or changed."""

from __future__ import annotations

import pytest

from resweep.detect.passive.compare import Outcome, compare
from resweep.domain.event import Hit
from resweep.domain.sample import Hashes, pack_answer

SCORES = [0.9, 0.8, 0.7, 0.6, 0.5, 0.499]


def answer(ids: str, scores: list[float] | None = None, tokens: list[int] | None = None) -> bytes:
    """Pack an answer whose passages are letters; a letter's source is its own capital."""
    scores = SCORES if scores is None else scores
    tokens = tokens or [100 + ord(i) for i in ids]
    hits = [Hit(i, s, source=i.upper(), tokens=t) for i, s, t in zip(ids, scores, tokens, strict=True)]
    return pack_answer(tuple(hits), Hashes())


BEFORE = answer("abcdef")
CASES = [
    ("the same", BEFORE, Outcome.SAME),
    ("last one swapped at the cut", answer("abcdeg"), Outcome.SAME),
    ("neighbours within rounding swapped", answer("abcdfe"), Outcome.SAME),
    ("a passage in the middle lost", answer("abdefg"), Outcome.CHANGED),
    ("order turned", answer("bacdef"), Outcome.CHANGED),
    ("other scores", answer("abcdef", [s / 2 for s in SCORES]), Outcome.SCORES),
    ("distances", answer("abcdef", [1 - s for s in SCORES]), Outcome.SCORES),
    ("ids reused for longer texts", answer("abcdef", tokens=[300] * 6), Outcome.CHANGED),
    ("nothing", answer("", []), Outcome.CHANGED),
]


@pytest.mark.parametrize(("what", "after", "outcome"), CASES, ids=[c[0] for c in CASES])
def test_an_answer_is_compared_by_what_stood_off_the_cut(what: str, after: bytes, outcome: Outcome) -> None:
    """The tolerance is 0.05 SD of the top score, here 0.01."""
    if what == "ids reused for longer texts":  # with other scores: the same scores would be another tokenizer
        after = answer("abcdef", [0.91, 0.83, 0.75, 0.62, 0.55, 0.53], [300] * 6)
    assert compare(BEFORE, after, 0.01) is outcome


def test_renumbering_keeps_scores_tokens_and_sources() -> None:
    """Other ids over equal bodies are the same passages."""
    hits = [Hit(i, s, source="S", tokens=90) for i, s in zip("abc", SCORES, strict=False)]
    renamed = [hit._replace(id=hit.id + "2") for hit in hits]
    both = [pack_answer(tuple(h), Hashes()) for h in (hits, renamed)]
    assert compare(both[0], both[1], 0.01) is Outcome.RENUMBERED


def test_without_scores_any_difference_counts() -> None:
    """There is no cut to stand off from."""
    before, after = (pack_answer(tuple(Hit(i) for i in ids), Hashes()) for ids in ("abc", "abd"))
    assert compare(before, after, 0.01) is Outcome.CHANGED
