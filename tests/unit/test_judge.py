"""The judge: what opens a flag, what keeps it, what clears it, and what stays silent."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from resweep.detect.introspect import binomial_tail
from resweep.detect.judge import Judge
from resweep.detect.settings import DetectSettings
from resweep.domain.batch import ConfigRecord
from resweep.domain.fingerprint import fingerprint
from resweep.domain.invalidation import InvalidationRules
from resweep.domain.verdict import FlagChange, TunedK
from resweep.domain.window import Window
from resweep.shipped import invalidation_rules

A = {"embedder": {"model": "m1"}, "chunker": {"tokens": 512}, "context_k": 8, "candidate_k": 50}
B = {**A, "embedder": {"model": "m2"}}
FIVE = {**A, "context_k": 5}


@pytest.fixture(scope="module")
def rules() -> InvalidationRules:
    return invalidation_rules()


def record(config: Mapping[str, object], **facts: object) -> ConfigRecord:
    known = fingerprint(config)
    return ConfigRecord(
        pipeline="bot",
        config=known.config_hash,
        basis=known.basis_hash,
        document=known.document,
        observed=facts,
    )


def tuned(config: Mapping[str, object], k: int = 8, **more: object) -> TunedK:
    return TunedK(
        pipeline="bot",
        basis=fingerprint(config).basis_hash,
        context_k=k,
        candidate_k=50,
        **more,  # type: ignore[arg-type]
    )


class Stream:
    """Feeds a judge: so many calls of a config, evenly spaced, and keeps what changed."""

    def __init__(self, rules: InvalidationRules, *records: TunedK) -> None:
        self.judge = Judge(DetectSettings(), rules)
        self.judge.set_tuned(records)
        self.ts = 1_796_000_000.0
        self.event = -1
        self.changes: list[FlagChange] = []

    def calls(self, config: ConfigRecord, n: int, every: float = 9.0, **counts: int) -> Stream:
        self.judge.config_seen(config)
        for _ in range(n):
            self.ts += every
            self.event += 1
            window = Window("bot", config.config, int(self.ts // 60), {"retrievals": 1, "ok": 1, **counts})
            self.judge.observe(window, self.ts, self.event)
            self.changes += self.judge.drain()
        return self

    def wait(self, seconds: float) -> Stream:
        self.ts += seconds
        self.judge.advance(self.ts, self.event)
        self.changes += self.judge.drain()
        return self

    @property
    def said(self) -> list[tuple[str, str]]:
        return [(c.kind, c.flag.reason) for c in self.changes]

    @property
    def state(self) -> str:
        return self.judge.verdicts(self.ts)[0].state


def test_a_tuned_pipeline_is_valid_and_nothing_is_said(rules: InvalidationRules) -> None:
    """A config whose basis has a tuned k at the declared depth raises nothing."""
    stream = Stream(rules, tuned(A)).calls(record(A), 200)
    assert (stream.said, stream.state) == ([], "valid")


def test_a_changed_embedder_expires_the_tuned_k_once(rules: InvalidationRules) -> None:
    """One flag, naming the embedder, at the event that completed the evidence."""
    stream = Stream(rules, tuned(A)).calls(record(A), 100).calls(record(B), 200)
    assert (stream.said, stream.state) == ([("opened", "config_changed")], "expired")
    flag = stream.changes[0].flag
    assert (flag.components, flag.severity, flag.opened_at_event, flag.onset_event) == (
        ("embedder",),
        "warning",
        124,
        100,
    )
    assert "the tuned k of bot has expired" in flag.message
    assert "m1" in flag.message
    assert "m2" in flag.message


def test_a_change_is_flagged_though_nothing_was_ever_tuned(rules: InvalidationRules) -> None:
    """`untuned` is a notice for the first basis; a change of basis opens config_changed all the same."""
    stream = Stream(rules).calls(record(A), 50).calls(record(B), 50)
    assert stream.said == [("opened", "untuned"), ("opened", "config_changed"), ("cleared", "untuned")] or (
        stream.said == [("opened", "untuned"), ("cleared", "untuned"), ("opened", "config_changed")]
    )


def test_accepting_a_k_for_the_new_basis_clears_the_flag(rules: InvalidationRules) -> None:
    """The cause is gone, so is the flag."""
    stream = Stream(rules, tuned(A)).calls(record(A), 100).calls(record(B), 100)
    stream.judge.set_tuned([tuned(A), tuned(B, tuned_at=stream.ts)])
    stream.wait(5)
    assert (stream.said[-1], stream.state) == (("cleared", "config_changed"), "valid")


def test_a_rollback_finds_the_earlier_tuned_k_again(rules: InvalidationRules) -> None:
    """Going back to the basis that was tuned clears the flag and opens no other."""
    stream = Stream(rules, tuned(A)).calls(record(A), 100).calls(record(B), 100).calls(record(A), 100)
    assert stream.said == [("opened", "config_changed"), ("cleared", "config_changed")]
    assert stream.state == "valid"


def test_a_rolling_deploy_of_ten_minutes_raises_nothing_while_it_lasts(rules: InvalidationRules) -> None:
    """Two configs side by side for ten minutes, then back to one: silence."""
    stream = Stream(rules, tuned(A)).calls(record(A), 100)
    for _ in range(20):
        stream.calls(record(B), 2, every=7.5).calls(record(A), 2, every=7.5)
    stream.calls(record(A), 100)
    assert (stream.said, stream.state) == ([], "valid")


def test_a_fleet_mixed_for_half_an_hour_is_flagged_and_clears(rules: InvalidationRules) -> None:
    """Side by side for more than twenty minutes is no deploy any more; one config again clears it."""
    stream = Stream(rules, tuned(A), tuned(B)).calls(record(A), 100)
    for _ in range(60):
        stream.calls(record(B), 2, every=7.5).calls(record(A), 2, every=7.5)
    assert stream.said == [("opened", "mixed_fleet")]
    stream.calls(record(A), 100)
    assert stream.said == [("opened", "mixed_fleet"), ("cleared", "mixed_fleet")]


def test_another_k_than_the_tuned_one_is_a_mismatch_not_a_change(rules: InvalidationRules) -> None:
    """Depths are no part of the basis: the tuned k still holds, it is just not the one in use."""
    stream = Stream(rules, tuned(A)).calls(record(A), 50).calls(record(FIVE), 50)
    assert (stream.said, stream.state) == ([("opened", "k_mismatch")], "suspect")
    assert "context_k is 5, tuned was 8" in stream.changes[0].flag.message


def test_a_k_that_nobody_chose_is_called_a_default(rules: InvalidationRules) -> None:
    """An untuned pipeline at its framework's default is told so."""
    known = record({"embedder": {"model": "m1"}}, framework="LangChain", k=4)
    stream = Stream(rules)
    stream.calls(
        ConfigRecord(**{**{f: getattr(known, f) for f in known.__struct_fields__}, "default_k": 4}), 1
    )
    assert "k = 4 is only the default of LangChain" in stream.changes[0].flag.message


def test_a_record_past_its_date_expires(rules: InvalidationRules) -> None:
    """`valid until` is a date after which the record no longer vouches."""
    stream = Stream(rules, tuned(A, valid_until=1_796_000_500.0)).calls(record(A), 100)
    assert (stream.said, stream.state) == ([("opened", "record_expired")], "expired")


def test_asked_twenty_got_four_is_one_finding(rules: InvalidationRules) -> None:
    """Fifty calls, one flag."""
    counts = {"asked:20": 1, "returned:4": 1, "short": 1}
    stream = Stream(rules, tuned({**A, "context_k": 20}, k=20)).calls(
        record({**A, "context_k": 20}), 50, **counts
    )
    assert stream.said == [("opened", "not_served")]
    assert "asked 20, got 4 at most in 50 of 50" in stream.judge.open_flags()[0].message


def test_a_stage_that_cuts_is_named(rules: InvalidationRules) -> None:
    """Enough candidates, too few returned: the stage after the index cut them."""
    counts = {"asked:10": 1, "returned:3": 1, "short": 1, "candidates_cut": 1}
    stream = Stream(rules, tuned(A)).calls(record(A), 40, **counts)
    assert stream.said == [("opened", "stage_cut")]


def test_a_refused_vector_size_pages_and_voids_the_tuned_k(rules: InvalidationRules) -> None:
    """The declared config did not change; the embedder did."""
    stream = Stream(rules, tuned(A)).calls(record(A), 30)
    stream.calls(record(A), 5, ok=0, errors=1, **{"dim:768:384": 1})
    flag = stream.changes[0].flag
    assert (flag.reason, flag.severity, stream.state) == ("dimension_mismatch", "page", "expired")
    assert "768" in flag.message
    assert "384" in flag.message


def test_a_live_model_other_than_declared_is_a_contradiction(rules: InvalidationRules) -> None:
    """What the object says against what the config says."""
    stream = Stream(rules, tuned(A)).calls(record(A, model="m9"), 5)
    assert stream.said == [("opened", "contradiction")]


def test_a_model_named_with_its_owner_is_no_contradiction(rules: InvalidationRules) -> None:
    """`org/m1` and `m1` are one model."""
    assert Stream(rules, tuned(A)).calls(record(A, model="org/M1"), 5).said == []


def test_maintenance_turns_warnings_into_notices(rules: InvalidationRules) -> None:
    """Announced work is recorded, nobody is woken; when it ends the flag is itself again."""
    stream = Stream(rules, tuned(A)).calls(record(A), 50)
    stream.judge.set_maintenance({"bot"})
    stream.calls(record(B), 50)
    assert [f.severity for f in stream.judge.open_flags()] == ["notice"]
    stream.judge.set_maintenance(())
    stream.wait(5)
    assert [f.severity for f in stream.judge.open_flags()] == ["warning"]


def test_a_flag_resolved_by_a_person_stays_away_while_its_cause_lasts(rules: InvalidationRules) -> None:
    """It clears once, moves no verdict, and comes back only after its cause was gone in between."""
    stream = Stream(rules, tuned(A)).calls(record(FIVE), 50)
    assert stream.judge.resolve(stream.judge.open_flags()[0].key, stream.ts)
    stream.wait(5).calls(record(FIVE), 50)
    assert stream.said == [("opened", "k_mismatch"), ("cleared", "k_mismatch")]
    assert stream.state == "valid"
    stream.calls(record(A), 50).calls(record(FIVE), 50)
    assert stream.said[2:] == [("opened", "k_mismatch")]


def test_a_restart_opens_nothing_twice(rules: InvalidationRules) -> None:
    """The dumped state carries open flags: loaded, the same cause is the same flag."""
    stream = Stream(rules, tuned(A)).calls(record(A), 50).calls(record(B), 50)
    again = Judge(DetectSettings(), rules, stream.judge.dump())
    again.set_tuned([tuned(A)])
    again.advance(stream.ts + 5)
    assert again.drain() == []
    assert again.open_flags() == stream.judge.open_flags()


def test_a_slow_pipeline_settles_by_time_instead_of_count(rules: InvalidationRules) -> None:
    """Twenty questions a day: two answers of a new config, the old one silent, are enough."""
    stream = Stream(rules, tuned(A)).calls(record(A), 20, every=4000).calls(record(B), 2, every=4000)
    assert stream.said == [("opened", "config_changed")]


def test_a_filter_that_starves_the_answer_is_named_by_its_key(rules: InvalidationRules) -> None:
    """Ninety full answers hide ten starved ones in the mean; the filter's own counts do not."""
    from resweep.domain.event import Hit, RetrievalEvent
    from resweep.domain.fold import fold_counts

    stream = Stream(rules, tuned(A))
    known = record(A)
    stream.judge.config_seen(known)
    for i, n in enumerate([*[10] * 90, 4, 3, 5, 4, 2, 6, 4, 4, 0, 8]):
        window = Window("bot", known.config, 0)
        filters = None if i < 90 else {"tenant": "acme"}
        hits = tuple(Hit(f"p{j}") for j in range(n))
        fold_counts(
            window,
            RetrievalEvent(
                f"e{i}", 0.0, "bot", known.config, asked=10, returned=n, hits=hits, filters=filters
            ),
        )
        stream.judge.observe(window, stream.ts + i, i)
    flags = stream.judge.open_flags()
    assert [(f.reason, f.evidence["filter"], f.evidence["empty"], f.evidence["short"]) for f in flags] == [
        ("filter_starves", "tenant", 1, 9)
    ]


@pytest.mark.parametrize(
    ("n", "x", "p", "expected"),
    [(10, 0, 0.3, 1.0), (2, 2, 0.5, 0.25), (3, 1, 0.5, 0.875), (10, 10, 0.05, 0.05**10)],
)
def test_the_binomial_tail_is_exact(n: int, x: int, p: float, expected: float) -> None:
    """P(X >= x), by hand."""
    assert binomial_tail(n, x, p) == pytest.approx(expected, rel=1e-12)
