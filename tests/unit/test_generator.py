"""Facts of the answer side: a changed generator, over time, through a provider's rolling rollout."""

from __future__ import annotations

import pytest

import resweep
from resweep.detect.generator import Fact, generator, take
from resweep.detect.judge import Judge
from resweep.detect.settings import DetectSettings
from resweep.domain.batch import ConfigRecord
from resweep.domain.invalidation import InvalidationRules
from resweep.domain.verdict import TunedK
from resweep.domain.window import Window
from resweep.testing import capture

RECORD = ConfigRecord(pipeline="bot", config="c" * 12, basis="b" * 12, document={"context_k": 8})


def one_passage(query: str) -> list[dict[str, str]]:
    """A retriever."""
    return [{"id": "p"}]


class Answers:
    """A judge that hears answers, a minute at a time."""

    def __init__(self, *tuned: TunedK) -> None:
        self.judge = Judge(DetectSettings(), InvalidationRules.load_default())
        self.judge.set_tuned(tuned)
        self.judge.config_seen(RECORD)
        self.ts = 1_800_000_000.0
        self.said: list[str] = []

    def minutes(self, n: int, **answers: int) -> Answers:
        """Let minutes pass with so many answers of each model."""
        for _ in range(n):
            self.ts += 60
            counts = {f"fact:response_model:{name}": times for name, times in answers.items()}
            window = Window("bot", RECORD.config, int(self.ts // 60), {"retrievals": 10, "ok": 10, **counts})
            self.judge.observe(window, self.ts)
            self.said += [
                f"{change.kind}" for change in self.judge.drain() if change.flag.components == ("generator",)
            ]
        return self


@pytest.fixture(name="answers")
def _answers() -> Answers:
    """Return answers after two quiet hours."""
    return Answers().minutes(120, old=10)


def test_a_new_model_is_said_after_ten_minutes_and_twenty_answers(answers: Answers) -> None:
    """Once, as a warning that makes the tuned k suspect."""
    answers.minutes(10, new=10)
    assert answers.said == []
    answers.minutes(200, new=10)
    assert answers.said == ["opened"]
    (flag,) = [f for f in answers.judge.open_flags() if f.components == ("generator",)]
    assert (flag.reason, flag.layer, flag.severity, flag.moves) == (
        "silent_change",
        "introspected",
        "warning",
        "suspect",
    )
    assert "response model is new, was old; retrieval cannot show" in flag.message


def test_few_answers_are_not_enough(answers: Answers) -> None:
    """Nineteen of the new one in hours."""
    answers.minutes(19, new=1).minutes(60, old=10)
    assert answers.said == []


def test_a_rolling_rollout_opens_once(answers: Answers) -> None:
    """Old and new alternate for hours, then the new one stays."""
    for _ in range(60):
        answers.minutes(1, new=10).minutes(1, old=10)
    answers.minutes(60, new=10)
    assert answers.said == ["opened"]


def test_it_clears_when_the_new_one_stays_away(answers: Answers) -> None:
    """For twenty answers and ten minutes."""
    answers.minutes(30, new=10).minutes(9, old=10)
    assert answers.said == ["opened"]
    answers.minutes(2, old=10)
    assert answers.said == ["opened", "cleared"]


def test_values_that_always_alternated_are_usual() -> None:
    """What came in the first hour is learnt."""
    answers = Answers()
    for _ in range(40):
        answers.minutes(1, a=5).minutes(1, b=5)
    answers.minutes(300, a=5).minutes(300, b=5)
    assert answers.said == []


def test_what_a_depth_was_tuned_with_is_right(answers: Answers) -> None:
    """Accepting after the change clears it."""
    answers.minutes(30, new=10)
    tuned = TunedK(pipeline="bot", basis=RECORD.basis, context_k=8, observed={"response_model": "new"})
    answers.judge.set_tuned([tuned])
    answers.minutes(5, new=10)
    assert answers.said == ["opened", "cleared"]


def test_a_restart_changes_nothing(answers: Answers) -> None:
    """The counts survive."""
    answers.minutes(5, new=10)
    answers.judge = Judge(DetectSettings(), InvalidationRules.load_default(), answers.judge.dump())
    answers.minutes(6, new=10)
    assert answers.said == ["opened"]


def test_other_counts_are_no_facts() -> None:
    """Nor facts of other names."""
    facts: dict[str, Fact] = {}
    take(facts, Window("bot", "c", 0, {"retrievals": 3, "fact:colour:red": 5}), 1.0)
    assert facts == {}
    assert list(generator("bot", "c", "b", facts, None)) == []


def test_what_the_application_notes_is_counted() -> None:
    """After the answer, with its tokens."""
    with capture() as sink:
        retrieve = resweep.watch(one_passage, pipeline="bot", config={"k": 1}, sink=sink)
        for n in range(3):
            retrieve("where")
            resweep.note(response_model="m1", system_fingerprint=f"fp{n % 2}", prompt_tokens=100)
        sink.flush()
        counts = sink.counts
    assert counts["fact:response_model:m1"] == 3
    assert (counts["fact:system_fingerprint:fp0"], counts["fact:system_fingerprint:fp1"]) == (2, 1)
    assert (counts["prompt_tokens_n"], counts["prompt_tokens_sum"]) == (3, 300)


def test_a_value_that_is_never_the_same_fills_no_window() -> None:
    """Beyond a bound the values are one."""
    with capture() as sink:
        retrieve = resweep.watch(one_passage, pipeline="bot", config={"k": 1}, sink=sink)
        retrieve("where")
        for n in range(1000):
            resweep.note(response_model=f"request-{n}")
        sink.flush()
        counts = sink.counts
    assert len([name for name in counts if name.startswith("fact:")]) < 300
    assert sum(n for name, n in counts.items() if name.startswith("fact:")) == 1000
