"""What stands between Ragas and an endpoint, without Ragas."""

from __future__ import annotations

import sys

import pytest

from resweep.domain.errors import UsageError
from resweep.serve import models, ragas_metrics
from resweep.sweep.answers import Said
from resweep.sweep.calls import CallFailedError

ENDPOINT = models.parse_model("http://127.0.0.1:9/v1#j")


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ('{"reason": "r", "verdict": 1}', (True, "r")),
        ('so: ```{"reason": "r", "verdict": "0"}```', (False, "r")),
        ('{"verdict": 1} {"verdict": 1, "reason": "r"}', (True, "r")),
    ],
)
def test_a_verdict_is_read_wherever_it_stands(text: str, verdict: tuple[bool, str]) -> None:
    """In a fence, as text, or said twice."""
    assert ragas_metrics._verdict(Said(text)) == verdict


@pytest.mark.parametrize(
    "text", ["", "yes", '{"verdict": 2}', '{"verdict": 1} {"verdict": 0}', '{"verdict": []}']
)
def test_what_is_no_verdict_is_asked_for_again_and_was_paid_for(text: str) -> None:
    """Neither a score nor both."""
    with pytest.raises(CallFailedError, match="verdict") as caught:
        ragas_metrics._verdict(Said(text, 7, 2))
    assert (caught.value.again, caught.value.taken) == (True, (7, 2))


def test_without_ragas_the_command_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the name of the extra."""
    monkeypatch.setitem(sys.modules, "ragas", None)
    monkeypatch.setitem(sys.modules, "ragas.llms.base", None)
    with pytest.raises(UsageError, match=r"pip install 'resweep\[ragas\]'"):
        ragas_metrics.weighing("context_precision", ENDPOINT, 5.0)


def test_a_metric_that_is_not_there_and_a_judge_that_cannot_be_asked_are_refused() -> None:
    """Before Ragas is loaded."""
    with pytest.raises(UsageError, match="expected --ragas among context_precision; got 'faithfulness'"):
        ragas_metrics.weighing("faithfulness", ENDPOINT, 5.0)
    with pytest.raises(UsageError, match="expected an endpoint as --judge"):
        ragas_metrics.weighing("context_precision", models.parse_model("app:judge"), 5.0)
