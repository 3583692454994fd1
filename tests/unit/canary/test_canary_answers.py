"""Retrieval canaries: stored answers against live ones; judged ones against what they were worth."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from resweep.detect.canary import answers, quality
from resweep.detect.canary.book import System, accept, findings, follow
from resweep.detect.finding import Finding
from resweep.domain.event import Hit

N, K = 30, 8


class Index:
    """A retriever over random vectors, whose parts can be changed one by one."""

    def __init__(self, seed: int = 7, passages: int = 400) -> None:
        self.rng = np.random.default_rng(seed)
        self.passages = self.rng.normal(size=(passages, 16))
        self.queries = self.rng.normal(size=(N, 16))
        self.names = [f"p{i}" for i in range(passages)]
        self.skip: set[int] = set()

    def answers(self, k: int = K) -> dict[str, tuple[Hit, ...]]:
        """Return the answers of now, by question."""
        return {f"q{i}": self._answer(query, k) for i, query in enumerate(self.queries)}

    def _answer(self, query: np.ndarray[tuple[int], np.dtype[np.float64]], k: int) -> tuple[Hit, ...]:
        scores = self.passages @ query
        best = [int(i) for i in np.argsort(-scores) if int(i) not in self.skip][:k]
        return tuple(Hit(self.names[i], float(scores[i]), source=f"s{i % 40}", tokens=100 + i) for i in best)


class Canaries:
    """One system, run hourly."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.system = System(pipeline="bot", basis="b" * 12, config="c" * 12)
        self.ts = 0.0

    def run(self, times: int = 1) -> list[Finding]:
        """Run some times and return what is found then."""
        for _ in range(times):
            self.ts += 3600.0
            self.system.run = answers.look(self.system.answers, self.index.answers(), self.ts)
        return list(findings(self.system))


@pytest.fixture(name="canaries")
def _canaries() -> Canaries:
    """Return canaries after ten quiet hours."""
    ready = Canaries(Index())
    assert ready.run(10) == []
    return ready


def test_the_same_answers_say_nothing(canaries: Canaries) -> None:
    """However long."""
    assert canaries.run(100) == []


def test_a_changed_system_is_found_in_three_runs(canaries: Canaries) -> None:
    """Two are a blip."""
    canaries.index.passages = np.random.default_rng(1).normal(size=canaries.index.passages.shape)
    assert canaries.run(2) == []
    (flag,) = canaries.run()
    assert (flag.reason, flag.layer, flag.severity, flag.moves) == (
        "silent_change",
        "active",
        "warning",
        "suspect",
    )
    assert flag.components == ("embedder",)
    assert flag.onset_ts == 11 * 3600.0


def test_it_clears_when_the_system_is_back(canaries: Canaries) -> None:
    """After three runs that are as before."""
    before = canaries.index.passages
    canaries.index.passages = np.random.default_rng(1).normal(size=before.shape)
    assert len(canaries.run(5)) == 1
    canaries.index.passages = before
    assert len(canaries.run(2)) == 1
    assert canaries.run() == []


def test_an_accepted_system_is_the_new_reference(canaries: Canaries) -> None:
    """Nothing is found until it changes again."""
    canaries.index.passages = np.random.default_rng(1).normal(size=canaries.index.passages.shape)
    assert len(canaries.run(3)) == 1
    accept(canaries.system, canaries.ts)
    assert canaries.run(5) == []


def test_a_half_lost_index_is_named(canaries: Canaries) -> None:
    """Whole sources are missing, scores stand still: filter or corpus."""
    canaries.index.skip = {i for i in range(400) if i % 40 < 20}
    (flag,) = canaries.run(3)
    assert flag.components == ("filter", "corpus")


def test_a_bulk_ingest_is_a_notice(canaries: Canaries) -> None:
    """New passages stand above the old ones and nothing else moved: nobody is woken."""
    index = canaries.index
    index.passages = np.vstack([index.passages, index.rng.normal(size=(300, 16))])
    index.names += [f"new{i}" for i in range(300)]
    (flag,) = canaries.run(3)
    assert (flag.components, flag.severity, flag.moves) == (("corpus",), "notice", None)
    assert "re-ingest" in flag.message


def test_a_corpus_that_grows_every_night_says_nothing(canaries: Canaries) -> None:
    """Stored answers roll forward with quiet runs, and the usual churn is learnt."""
    index = canaries.index
    for night in range(60):
        index.passages = np.vstack([index.passages, index.rng.normal(size=(3, 16))])
        index.names += [f"n{night}-{i}" for i in range(3)]
        assert canaries.run() == []


def test_a_reingest_is_followed_after_a_day(canaries: Canaries) -> None:
    """The notice goes by itself, and the next change is seen."""
    index = canaries.index
    index.passages = np.vstack([index.passages, index.rng.normal(size=(300, 16))])
    index.names += [f"new{i}" for i in range(300)]
    assert [flag.severity for flag in canaries.run(20)] == ["notice"]
    assert canaries.run(10) == []
    canaries.index.passages = np.random.default_rng(1).normal(size=canaries.index.passages.shape)
    assert [flag.severity for flag in canaries.run(3)] == ["warning"]


def test_replaced_documents_are_a_notice_and_lost_ones_are_not(canaries: Canaries) -> None:
    """What tells them apart is the score at the cut."""
    index = canaries.index
    for at in index.rng.choice(400, 120, replace=False):
        index.passages[at] = index.rng.normal(size=16)
        index.names[at] = f"again{at}"
    assert [flag.severity for flag in canaries.run(3)] == ["notice"]
    index.skip = set(range(0, 400, 2))
    assert [flag.severity for flag in canaries.run(3)] == ["warning"]


def test_rounding_says_nothing(canaries: Canaries) -> None:
    """Scores through float16 swap neighbours at the cut."""
    index = canaries.index
    index.passages = index.passages.astype(np.float16).astype(np.float64)
    assert canaries.run(5) == []


def test_renumbered_passages_are_a_notice(canaries: Canaries) -> None:
    """The same passages under other ids."""
    canaries.index.names = [f"renamed-{name}" for name in canaries.index.names]
    (flag,) = canaries.run()
    assert (flag.reason, flag.severity, flag.moves) == ("ids_renumbered", "notice", None)
    canaries.ts += 2 * 86400
    assert canaries.run() == []


def test_a_run_that_failed_says_nothing(canaries: Canaries) -> None:
    """No answers, no evidence, for or against."""
    run = answers.look(canaries.system.answers, {}, 1.0)
    assert (run.compared, run.surprise) == (0, 0.0)


def test_the_state_survives_a_restart(canaries: Canaries) -> None:
    """In the middle of a doubt."""
    canaries.index.passages = np.random.default_rng(1).normal(size=canaries.index.passages.shape)
    canaries.run(2)
    canaries.system = msgspec.msgpack.decode(msgspec.msgpack.encode(canaries.system), type=System)
    assert len(canaries.run()) == 1


def test_what_is_known_of_an_earlier_system_comes_back_with_it(canaries: Canaries) -> None:
    """After a swap was accepted and taken back, its answers are compared with those of its own time."""
    system, before = canaries.system, canaries.index.passages
    state = system.embedder
    state.reference = state.present = "a"
    canaries.index.passages = np.random.default_rng(1).normal(size=before.shape)
    canaries.run(3)
    state.present = "b"
    accept(system, canaries.ts)
    assert canaries.run(3) == []
    assert state.reference == "b"
    canaries.index.passages, state.present = before, "a"
    assert follow(system, {"a", "b"})
    assert canaries.run(4) == []
    assert not follow(system, {"a", "b"})


class Judged:
    """Judged questions, some of which can be made to lose their evidence."""

    def __init__(self, cases: int) -> None:
        self.state = quality.QualityState()
        self.cases = [f"c{i}" for i in range(cases)]
        self.ts = 0.0

    def run(self, lost: int = 0, times: int = 1, k: int = 5) -> quality.QualityRun:
        """Run some times with so many cases at recall 0 and the others at 1."""
        rankings = {
            name: [f"x{j}" for j in range(5)] if i < lost else ["good", *(f"x{j}" for j in range(4))]
            for i, name in enumerate(self.cases)
        }
        for _ in range(times):
            self.ts += 3600
            run = quality.look(self.state, rankings, {name: {"good"} for name in self.cases}, k, self.ts)
        return run

    def found(self) -> list[Finding]:
        """Return what a system with these cases finds."""
        return list(findings(System(pipeline="bot", basis="b" * 12, quality=self.state)))


def test_a_drop_of_recall_is_a_page_that_moves_no_verdict() -> None:
    """Whether k is in doubt is another question."""
    judged = Judged(40)
    assert judged.run().now == 1.0
    judged.run(lost=12, times=3)
    (flag,) = judged.found()
    assert (flag.reason, flag.severity, flag.moves) == ("quality_drop", "page", None)
    assert "recall@5 of the judged canaries fell from 1.00 to 0.70" in flag.message
    judged.run(times=3)
    assert judged.found() == []


def test_eight_cases_can_show_it_too() -> None:
    """The test is exact, so a small set is no reason to be silent, nor to shout."""
    judged = Judged(8)
    judged.run()
    judged.run(lost=2, times=3)
    assert [flag.reason for flag in judged.found()] == ["canary_lost"]
    judged.run(lost=4, times=3)
    assert [flag.reason for flag in judged.found()] == ["quality_drop"]


def test_a_lost_canary_is_named_after_three_runs() -> None:
    """A notice with the case's id."""
    judged = Judged(40)
    judged.run(times=5)
    judged.run(lost=1, times=2)
    assert judged.found() == []
    judged.run(lost=1)
    (flag,) = judged.found()
    assert (flag.reason, flag.severity, flag.evidence["lost"]) == ("canary_lost", "notice", ["c0"])


def test_a_slow_decline_counts() -> None:
    """The reference is pinned: one case more every day comes to a drop in the end."""
    judged = Judged(40)
    judged.run()
    for lost in range(14):
        judged.run(lost=lost, times=3)
    assert "quality_drop" in [flag.reason for flag in judged.found()]


def test_another_depth_is_another_measure() -> None:
    """Recall at 3 is not compared with recall at 5."""
    judged = Judged(40)
    judged.run()
    run = judged.run(lost=20, times=3, k=3)
    assert (run.lost, judged.found()) == (0, [])
