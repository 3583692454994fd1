"""Sweeping a live retriever: asked as seldom as it allows, within a budget, going on after a break."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from resweep.domain.errors import BudgetSpentError, InputError, UsageError
from resweep.serve.live import Live
from resweep.sweep.cache import Cache
from resweep.sweep.calls import CallFailedError, Policy, Progress
from resweep.sweep.engine import Sweep
from resweep.sweep.evidence import Cell
from resweep.sweep.lists import Case
from resweep.sweep.runner import Target, Wanted, estimate_calls, sweep_live

CASES = [Case(case_id=f"c{i}", query=f"question {i}", judgments={f"d{i % 5}": 1.0}) for i in range(30)]
KS = (1, 2, 4, 8)
QUICK = Policy(backoff_s=0.0, sleep=lambda _: None)
Run = Callable[..., Sweep]


class Ranked:
    """Answers with d0, d1, … and writes down what it was asked."""

    def __init__(self, size: int = 20) -> None:
        self.size = size
        self.asked: list[tuple[str, int]] = []

    def retrieve(self, query: str, k: int = 4) -> list[dict[str, Any]]:
        self.asked.append((query, k))
        return [{"id": f"d{i}", "text": f"text {i}", "score": 1 - i / 100} for i in range(min(k, self.size))]


class Reranked(Ranked):
    """Turns round what it was asked for: a list at one depth is no beginning of a deeper one."""

    def retrieve(self, query: str, k: int = 4) -> list[dict[str, Any]]:
        return super().retrieve(query, k)[::-1]


class Grid:
    """Ranks its candidates from the last to the first, and says how it was asked."""

    def __init__(self) -> None:
        self.asked: set[tuple[int, int]] = set()

    def __call__(self, query: str, candidate_k: int, context_k: int) -> list[dict[str, Any]]:
        self.asked.add((candidate_k, context_k))
        return [{"id": f"d{i}"} for i in reversed(range(candidate_k))][:context_k]


@pytest.fixture(name="cache")
def _cache(tmp_path: Path) -> Iterator[Cache]:
    cache = Cache(tmp_path / "cache", now=1e9)
    yield cache
    cache.close()


@pytest.fixture(name="run")
def _run(cache: Cache) -> Run:
    """Sweep a retriever over the 30 cases."""

    def run(retriever: Any, ks: tuple[int, ...] = KS, **more: Any) -> Sweep:
        policy = more.pop("policy", QUICK)
        candidate_ks = more.pop("candidate_ks", ())
        target = Live(retriever).target("v1", grid=bool(candidate_ks))
        wanted = Wanted(cases=more.pop("cases", CASES), ks=ks, candidate_ks=candidate_ks, sample=3)
        return sweep_live(target, wanted, cache=cache, policy=policy, **more)

    return run


def test_prefixes_are_retrieved_once_at_the_greatest_depth(run: Run) -> None:
    """30 cases once, and 3 of them at the three smaller depths to check that lists are prefixes."""
    retriever = Ranked()
    swept = run(retriever)
    assert len(retriever.asked) == 30 + 3 * 3
    recall = [point["measures"]["recall"]["mean"] for point in swept.report.points]
    assert recall == pytest.approx([0.2, 0.4, 0.8, 1.0])
    assert "on 3 cases the lists at every depth were checked" in swept.report.notes[0]


def test_lists_that_are_no_prefixes_are_retrieved_at_every_depth(run: Run) -> None:
    """At k = 1 this retriever returns d0, at k = 2 d1 first: sliced lists would say otherwise."""
    retriever = Reranked()
    swept = run(retriever, ks=(1, 2))
    assert len(retriever.asked) == 60
    assert swept.tune.run(Cell(2, 1)).lists[0].ids == ["d0"]  # type: ignore[union-attr]
    assert swept.tune.run(Cell(2, 2)).lists[0].ids == ["d1", "d0"]  # type: ignore[union-attr]
    assert [p["measures"]["recall"]["mean"] for p in swept.report.points] == pytest.approx([0.2, 0.4])
    assert any("every depth was retrieved by itself" in note for note in swept.report.notes)


def test_a_grid_reranks_at_every_depth_and_never_runs_what_is_impossible(run: Run) -> None:
    """9 of 12 cells are valid; cells with k above the rerank depth are marked."""
    retriever = Grid()
    swept = run(retriever, ks=(3, 5, 10, 20), candidate_ks=(5, 10, 20))
    states = {(p["candidate_k"], p["context_k"]): p["state"] for p in swept.report.points}
    assert [cell for cell, state in states.items() if state == "impossible"] == [(5, 10), (5, 20), (10, 20)]
    assert max(k for c, k in retriever.asked if c == 5) == 5
    assert swept.tune.runs[5].lists[0].ids == ["d4", "d3", "d2", "d1", "d0"]  # type: ignore[union-attr]
    assert swept.tune.runs[20].lists[0].ids[0] == "d19"  # type: ignore[union-attr]


def test_a_depth_that_is_never_served_is_not_reachable(run: Run) -> None:
    """Asked for 20, always got 4: 8 and 16 are neither points on a flat curve nor chosen."""

    class FourOnly:
        search_kwargs = {"k": 20}  # noqa: RUF012

        def invoke(self, query: str, **kw: Any) -> list[dict[str, Any]]:
            return [{"id": f"d{i}", "text": f"t{i}", "score": 0.9 - i / 10} for i in range(4)]

    report = run(FourOnly(), ks=(2, 4, 8, 16)).report
    assert [p["state"] for p in report.points] == ["measured", "measured", "unreachable", "unreachable"]
    assert report.points[2]["why"] == "not reachable, at most 4 returned"
    assert report.chosen["context_k"] == 4


def test_nothing_is_asked_twice(run: Run) -> None:
    """A sweep whose budget ran out goes on where it was, and a third one asks for nothing."""
    retriever = Reranked()
    with pytest.raises(BudgetSpentError, match="they are spent, 57 of 60 answers are kept"):
        run(retriever, ks=(1, 2), policy=Policy(max_calls=57, backoff_s=0, concurrency=1))
    run(retriever, ks=(1, 2))
    run(retriever, ks=(1, 2))
    assert len(retriever.asked) == len(set(retriever.asked)) == 60


def test_a_budget_that_cannot_suffice_pays_for_nothing(run: Run) -> None:
    """The estimate comes first."""
    retriever = Ranked()
    with pytest.raises(BudgetSpentError, match="at least 39 calls \\(30 cases\\), got 10; nothing was asked"):
        run(retriever, policy=Policy(max_calls=10))
    assert retriever.asked == []


def test_an_interrupted_sweep_keeps_what_was_under_way(run: Run) -> None:
    """Four calls at a time are paid for; none of them is made again."""
    asked: list[str] = []

    def slow(query: str, k: int) -> list[dict[str, Any]]:
        asked.append(query)
        time.sleep(0.02)
        return [{"id": f"d{i}"} for i in range(k)]

    def interrupt(at: Progress) -> None:
        if at.done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(slow, ks=(8,), policy=Policy(concurrency=4), watch=interrupt)
    assert 3 <= len(asked) < 30
    run(slow, ks=(8,))
    assert len(asked) == len(set(asked)) == 30


def test_one_budget_holds_for_both_stages_together(run: Run) -> None:
    """39 calls of the first and 30 of the other: refused before any where 68 are allowed."""
    retriever, before = Ranked(), Ranked()
    stages = {"first_stage": Live(before).target("first")}
    with pytest.raises(BudgetSpentError, match="at least 69 calls"):
        run(retriever, policy=Policy(max_calls=68), **stages)
    assert (retriever.asked, before.asked) == ([], [])
    run(retriever, policy=Policy(max_calls=69), **stages)


def test_a_first_stage_that_takes_no_depth_is_asked_once(run: Run) -> None:
    """What it returns is what the reranker had to choose from."""
    found = Live(lambda query: [{"id": f"d{i}"} for i in range(3)])
    codes = {one["code"] for one in run(Ranked(), first_stage=found.target("first")).report.diagnosis}
    assert codes


def test_prefixes_that_could_not_be_checked_are_not_assumed(run: Run) -> None:
    """The three cases tried bring nothing; the others show that it reranks."""
    retriever = Reranked()
    quiet = {"question 0", "question 10", "question 20"}

    def some(query: str, k: int) -> list[dict[str, Any]]:
        return [] if query in quiet else retriever.retrieve(query, k)

    report = run(some).report
    assert "could not be checked" in report.notes[0]
    found = [i for i in range(30) if i % 5 == 0 and i not in (0, 10, 20)]  # at k = 1 only d0 comes
    assert report.points[0]["measures"]["recall"]["mean"] == pytest.approx(len(found) / 30)
    assert len(retriever.asked) == 27 * len(KS)


def test_a_sampled_call_that_fails_leaves_its_case_in(run: Run) -> None:
    """Its list at the greatest depth came: it is measured, and nothing is said to be missing."""

    def picky(query: str, k: int) -> list[dict[str, Any]]:
        if (query, k) == ("question 10", 2):
            raise CallFailedError("not at this depth", again=False)
        return Ranked().retrieve(query, k)

    report = run(picky).report
    assert (report.n_cases, report.n_missing) == (30, 0)
    assert "on 2 cases" in report.notes[0]
    assert not [note for note in report.notes if "failed" in note]


def test_the_estimate_is_exact_for_prefixes(cache: Cache, run: Run) -> None:
    """Least where lists are prefixes, most where not; answers that are there cost nothing."""
    target, wanted = Live(Ranked()).target("v1"), Wanted(cases=CASES, ks=KS, sample=3)
    before = estimate_calls(target, wanted, cache)
    run(Ranked())
    after = estimate_calls(target, wanted, cache)
    assert (before.least, before.most, before.cached) == (39, 120, 0)
    assert (after.least, after.most, after.cached) == (0, 81, 39)


def test_another_version_is_asked_anew(cache: Cache) -> None:
    """A new config or corpus revision shares no answer with the old one; an old answer counts as none."""
    retriever, wanted = Ranked(), Wanted(cases=CASES, ks=(4,))
    for version in ("v1", "v2"):
        sweep_live(Live(retriever).target(version), wanted, cache=cache, policy=QUICK)
    assert len(retriever.asked) == 60


def test_old_answers_count_as_none(tmp_path: Path) -> None:
    """An index changes; an answer of last week says nothing of today."""
    for now, there in ((1e9, False), (1e9 + 50, True), (1e9 + 200, False)):
        cache = Cache(tmp_path, now=now, max_age_s=100)
        assert (cache.get("a") is not None) is there
        cache.put("a", b"1") if now == 1e9 else None
        cache.close()


def test_a_call_that_fails_is_made_again(run: Run) -> None:
    """Twice at most with three attempts; each attempt is a call paid for."""
    failures = {"question 3": 2}

    def flaky(query: str, k: int) -> list[dict[str, Any]]:
        if failures.get(query, 0):
            failures[query] -= 1
            raise ConnectionError("reset")
        return [{"id": f"d{i}"} for i in range(k)]

    seen: list[Progress] = []
    assert run(flaky, ks=(8,), watch=seen.append).report.n_missing == 0
    assert (seen[-1].calls, seen[-1].retried, seen[-1].failed, seen[-1].done) == (32, 2, 0, 30)


def test_a_case_that_fails_for_good_counts_as_missing_and_is_named(run: Run) -> None:
    """One of thirty may; the report says which and why."""

    def broken(query: str, k: int) -> list[dict[str, Any]]:
        if query == "question 7":
            raise ValueError("cannot parse")
        return [{"id": f"d{i}"} for i in range(k)]

    report = run(broken, ks=(8,)).report
    assert report.missing == ("c7",)
    assert "case c7 failed for good and counts as missing: ValueError: cannot parse" in report.notes


def test_a_retriever_that_never_answers_ends_the_sweep_at_once(run: Run) -> None:
    """After five cases, not after all of them."""
    asked: list[str] = []

    def dead(query: str, k: int) -> None:
        asked.append(query)
        raise CallFailedError("no such index", again=False)

    with pytest.raises(
        InputError, match="the first 5 all failed, the last with: CallFailedError: no such index"
    ):
        run(dead, ks=(8,), policy=Policy(concurrency=1, backoff_s=0))
    assert len(asked) <= 6


def test_too_many_failures_make_no_report(run: Run) -> None:
    """A mean over what happened to answer would flatter."""

    def half(query: str, k: int) -> list[dict[str, Any]]:
        if int(query.split()[1]) % 2:
            raise ValueError("odd")
        return [{"id": "d0"}]

    with pytest.raises(InputError, match="15 of 30 failed for good"):
        run(half, ks=(8,))


def test_a_call_that_hangs_is_given_up(run: Run) -> None:
    """The rest of the sweep goes on; the hanging thread is left behind."""
    release = threading.Event()

    def stuck(query: str, k: int) -> list[dict[str, Any]]:
        if query == "question 9":
            release.wait(20)
        return [{"id": f"d{i}"} for i in range(k)]

    report = run(stuck, ks=(8,), policy=Policy(timeout_s=0.2, attempts=1)).report
    release.set()
    assert report.missing == ("c9",)
    assert any("TimeoutError: no answer within 0.2 s" in note for note in report.notes)


def test_calls_run_side_by_side_and_the_report_is_the_same(run: Run, tmp_path: Path) -> None:
    """Eight at a time or one: equal lists give equal reports."""
    most, now, lock = 0, 0, threading.Lock()

    def slow(query: str, k: int) -> list[dict[str, Any]]:
        nonlocal most, now
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.005)
        with lock:
            now -= 1
        return [{"id": f"d{i}"} for i in range(k)]

    several = run(slow, ks=(4,), cases=CASES[:15], policy=Policy(concurrency=8)).report
    cache = Cache(tmp_path / "other", now=1e9)
    target = Live(slow).target("v1")
    one = sweep_live(target, Wanted(cases=CASES[:15], ks=(4,)), cache=cache, policy=Policy(concurrency=1))
    cache.close()
    assert most > 1
    assert several.to_json() == one.report.to_json()


def test_unjudged_cases_are_not_asked_for(run: Run) -> None:
    """Nothing is learnt from them; they are counted."""
    retriever = Ranked()
    report = run(retriever, ks=(4,), cases=[*CASES, Case(case_id="new", query="unjudged")]).report
    assert len(retriever.asked) == 30
    assert report.n_excluded_unjudged == 1


def test_a_case_without_its_query_cannot_be_asked(run: Run) -> None:
    """Said before anything is asked."""
    with pytest.raises(InputError, match=r"none for 1 of 1 cases \('q1', ...\)"):
        run(Ranked(), cases=[Case(case_id="q1", judgments={"d0": 1})])


class TestHowARetrieverIsAsked:
    """The depth goes where the retriever takes it; the object stays as it was."""

    def ids(self, retriever: Any, k: int = 3, c: int | None = None) -> list[str]:
        from resweep.sweep.runner import Question

        return list(Live(retriever).ask(Question("q", k, c)).ids)

    def test_by_an_attribute_of_a_copy(self) -> None:
        """A retriever with `top_k` and a `search(query)` is copied, not changed."""

        class Attribute:
            top_k = 5

            def search(self, query: str) -> list[dict[str, str]]:
                return [{"id": f"d{i}"} for i in range(self.top_k)]

        retriever = Attribute()
        assert self.ids(retriever) == ["d0", "d1", "d2"]
        assert retriever.top_k == 5

    def test_by_search_kwargs_of_a_copy(self) -> None:
        """As LangChain's retrievers hold it, candidates for MMR included."""

        class Kwargs:
            def __init__(self) -> None:
                self.search_kwargs = {"k": 8, "fetch_k": 20}

            def invoke(self, query: str) -> list[str]:
                return [f"{self.search_kwargs['k']}-{self.search_kwargs['fetch_k']}"]

        retriever = Kwargs()
        assert Live(retriever).candidates == ("search_kwargs", "fetch_k")
        found = Live(retriever).ask(_question(2, 7))
        assert found.texts == ["2-7"]
        assert retriever.search_kwargs == {"k": 8, "fetch_k": 20}

    def test_coroutines_and_generators_are_read_to_their_end(self) -> None:
        """On one loop, since an async client belongs to one."""

        async def wait(query: str, limit: int) -> list[dict[str, str]]:
            return [{"id": f"d{i}"} for i in range(limit)]

        async def stream(query: str, limit: int) -> Any:
            for i in range(limit):
                yield {"id": f"d{i}"}

        assert self.ids(wait) == self.ids(stream) == ["d0", "d1", "d2"]

    def test_a_retriever_without_a_depth_is_asked_once(self, run: Run) -> None:
        """Its lists are cut, and the report says so."""
        report = run(lambda query: [{"id": f"d{i}"} for i in range(6)]).report
        assert report.notes[0].startswith("the retriever takes no depth")
        assert [p["state"] for p in report.points] == ["measured"] * 3 + ["unreachable"]

    def test_a_case_is_asked_under_the_filters_it_came_with(self, cache: Cache) -> None:
        """The same words of two tenants are two questions, with a call and an answer each."""
        cases = [
            Case(case_id=tenant, query="refunds", filters={"tenant": tenant}, judgments={f"{tenant}0": 1.0})
            for tenant in ("acme", "zenith")
        ]

        def search(query: str, k: int, filters: dict[str, str] | None = None) -> list[dict[str, str]]:
            return [{"id": f"{(filters or {}).get('tenant')}{i}"} for i in range(k)]

        wanted = Wanted(cases=cases, ks=(1, 2))
        target = Live(search).target("v")
        assert estimate_calls(target, wanted, cache).most == 4
        swept = sweep_live(target, wanted, cache=cache, policy=QUICK)
        assert swept.report.points[0]["measures"]["recall"]["mean"] == 1.0

    def test_a_filter_is_never_left_out_in_silence(self) -> None:
        """Where a retriever has no place for it, another system would be measured."""
        from resweep.sweep.runner import Question

        with pytest.raises(UsageError, match="asked under a filter on tenant, and this retriever takes none"):
            Live(Ranked()).ask(Question("q", 3, None, {"tenant": "acme"}))

    def test_filters_go_into_search_kwargs_of_a_copy(self) -> None:
        """As LangChain's retrievers hand them to their store."""
        from resweep.sweep.runner import Question

        class Kwargs:
            def __init__(self) -> None:
                self.search_kwargs: dict[str, Any] = {"k": 8}

            def invoke(self, query: str) -> list[str]:
                return [str(self.search_kwargs)]

        retriever = Kwargs()
        found = Live(retriever).ask(Question("q", 3, None, {"tenant": "acme"}))
        assert found.texts == ["{'k': 3, 'filter': {'tenant': 'acme'}}"]
        assert retriever.search_kwargs == {"k": 8}

    def test_a_grid_needs_candidates(self) -> None:
        """Said at once, with the names it may have."""
        with pytest.raises(UsageError, match="takes candidate_k \\(or fetch_k, candidates, n_candidates\\)"):
            Live(Ranked()).target("v", grid=True)

    def test_something_that_does_not_retrieve_is_refused(self) -> None:
        """With what would do."""
        with pytest.raises(UsageError, match="something that retrieves; got int"):
            Live(3)


def _question(k: int, c: int) -> Any:
    from resweep.sweep.runner import Question

    return Question("q", k, c)


def test_a_target_of_ones_own_needs_no_adapter(cache: Cache) -> None:
    """Any callable from a question to a ranked list."""
    from resweep.sweep.lists import RankedList

    target = Target(ask=lambda q: RankedList([f"d{i}" for i in range(q.context_k)]), version="v")
    swept = sweep_live(target, Wanted(cases=CASES, ks=KS, sample=2), cache=cache, policy=QUICK)
    assert swept.report.n_cases == 30
