"""Conditions on a depth: said in text or code, joined with & and |."""

from __future__ import annotations

import pytest

from resweep.domain.errors import UsageError
from resweep.sweep.constraints import ceiling, floor, parse_constraint

MEASURES = ("recall", "answer_accuracy")


class Fixed:
    """Numbers of one imagined cell."""

    def number(self, name: str, statistic: str, part: str | None) -> float | None:
        """Return what is known of it."""
        known = {
            ("recall", "mean", None): 0.79,
            ("recall", "low", None): 0.755,
            ("recall", "mean", "language=de"): 0.6,
            ("prompt_tokens", "mean", None): 4096.0,
        }
        return known.get((name, statistic, part))


@pytest.mark.parametrize(
    ("text", "ok"),
    [
        ("recall >= 0.75", True),
        ("recall>=0.79", True),
        ("recall >= 0.8", False),
        ("recall.low >= 0.77", False),
        ("recall[language=de] >= 0.7", False),
        ("prompt_tokens <= 4096", True),
        ("recall >= 0.75 & prompt_tokens <= 4000", False),
        ("recall >= 0.9 | prompt_tokens <= 5000", True),
        ("recall >= 0.9 & recall >= 0.1 | prompt_tokens <= 5000", True),
    ],
)
def test_a_constraint_in_words(text: str, ok: bool) -> None:
    """Floors, ceilings, slices, interval ends; & binds before |."""
    assert parse_constraint(text, MEASURES)(Fixed()).ok is ok


def test_code_and_text_say_the_same() -> None:
    """What is built reads as it would be written."""
    built = floor("recall", 0.75) & ceiling("prompt_tokens", 4096) | floor("answer_accuracy", 0.7)
    assert str(built) == "recall >= 0.75 & prompt_tokens <= 4096 | answer_accuracy >= 0.7"
    assert parse_constraint(str(built), MEASURES) == built


def test_a_failure_gives_the_number() -> None:
    """What was asked, and what there is."""
    assert floor("recall", 0.8)(Fixed()).text == "recall >= 0.8 fails (0.79)"


def test_no_data_does_not_meet_a_floor() -> None:
    """What was not measured cannot be promised."""
    met = floor("answer_accuracy", 0.5)(Fixed())
    assert not met.ok
    assert "no data" in met.text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("recall > 0.5", "such as `recall >= 0.75`"),
        ("hitrate >= 0.5", "got `hitrate`"),
        ("recall.p99 >= 0.5", "got `p99`"),
        ("recall >= 1e", "expected a number"),
    ],
)
def test_what_cannot_be_meant(text: str, says: str) -> None:
    """Each refusal says what may be written."""
    with pytest.raises(UsageError, match=says):
        parse_constraint(text, MEASURES)
