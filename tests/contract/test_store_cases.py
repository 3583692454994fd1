"""Cases in the store: one row a question, one case a reviewer, nothing lost and nothing that comes back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import pytest

from resweep.domain.case import Candidate, CaseLine, Draw, Filter, Judgment, question_key
from resweep.domain.clock import VirtualClock
from resweep.domain.errors import InputError, UsageError
from resweep.domain.event import Feedback, Hit, RetrievalEvent
from resweep.domain.sampling import HOUR, Plan
from resweep.store.canaries import CanaryQuery
from resweep.store.caseset import Place
from resweep.store.sql import SqlStore

NOW = 1_796_000_000.0
SINCE = NOW - NOW % HOUR
HITS = (Hit("a", 0.9, text_hash="ta", text="alpha"), Hit("b", 0.8, text_hash="tb", text="beta"))


def candidate(query: str, draw: Draw | None = None) -> Candidate:
    """Give a candidate for a question."""
    return Candidate(pipeline="bot", question=question_key(query), query=query, draw=draw, hits=HITS, asked=1)


def draw(event: str, p: float = 0.1, stratum: str = "uniform", user: str | None = None) -> Draw:
    """Give a sampled event of the hour."""
    return Draw(event_id=event, ts=SINCE + 60, p=p, plan="plan1", stratum=stratum, config="c", user_key=user)


def plan(**changes: object) -> Plan:
    """Give the hour's plan."""
    return Plan(pipeline="bot", seed="s", since=SINCE, until=SINCE + HOUR, **changes).named()  # type: ignore[arg-type]


def put(store: SqlStore, *queries: str) -> list[str]:
    """Put questions into the set; return their case ids."""
    found = store.enqueue([candidate(q) for q in queries])
    return [found[question_key(q)] for q in queries]


def test_a_question_is_queued_once_however_many_threads_put_it_there(
    store: SqlStore, clock: VirtualClock
) -> None:
    """Three spellings, 300 times over ten threads: one case, seen 300 times, with first and last."""
    spellings = ("Reset  my password?", "reset my password?", " Reset my password? ")
    store.enqueue([candidate(spellings[0])])
    clock.ts = NOW + 50
    work = [candidate(s) for s in spellings for _ in range(100)][1:]
    threads = [threading.Thread(target=_put_each, args=(store, work[i::10])) for i in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (only,) = store.case_page()
    assert (only.seen, only.first_ts, only.last_ts) == (300, NOW, NOW + 50)


def _put_each(store: SqlStore, some: Sequence[Candidate]) -> None:
    for one in some:
        store.enqueue([one])


def test_two_reviewers_are_given_different_cases(store: SqlStore) -> None:
    """And a third is given none; whoever asks again gets their own again."""
    put(store, "one", "two")
    ann, bea = store.claim("ann"), store.claim("bea")
    assert ann is not None
    assert bea is not None
    assert ann.case_id != bea.case_id
    assert store.claim("cid") is None
    again = store.claim("ann")
    assert again is not None
    assert again.case_id == ann.case_id


def test_a_claim_ends_after_fifteen_minutes(store: SqlStore, clock: VirtualClock) -> None:
    """The case goes back into the queue."""
    put(store, "one")
    store.claim("ann")
    clock.ts = NOW + 899
    assert store.claim("bea") is None
    clock.ts = NOW + 900
    assert store.claim("bea") is not None


def test_a_late_label_counts_where_nobody_else_gave_one(store: SqlStore, clock: VirtualClock) -> None:
    """The claim was over, the work is not lost."""
    (case,) = put(store, "one")
    store.claim("ann")
    clock.ts = NOW + 5000
    store.judge(case, "ann", "a", 1)
    assert store.finish(case, "ann", "labelled").lead == "ann"


def test_a_late_label_is_a_second_opinion_where_somebody_else_gave_one(
    store: SqlStore, clock: VirtualClock
) -> None:
    """Nothing is overwritten, and the disagreement is kept."""
    (case,) = put(store, "one")
    store.claim("ann")
    clock.ts = NOW + 5000
    store.claim("bea")
    store.judge(case, "bea", "a", 1)
    store.finish(case, "bea", "labelled")
    store.judge(case, "ann", "a", 0)
    after = store.finish(case, "ann", "labelled")
    assert (after.lead, after.disputed) == ("bea", True)
    view = store.case(case)
    assert {(j.reviewer, j.grade) for j in view.judgments} == {("ann", 0.0), ("bea", 1.0)}
    (line,) = store.case_lines()
    assert [(j.passage_id, j.grade) for j in line.judgments] == [("a", 1.0)]


def test_whose_word_counts_can_be_settled(store: SqlStore) -> None:
    """By naming a reviewer; one who gave no word cannot be named."""
    (case,) = put(store, "one")
    for who, grade in (("ann", 0.0), ("bea", 1.0)):
        store.judge(case, who, "a", grade)
        store.finish(case, who, "labelled")
    assert store.settle(case, "cid", "bea").disputed is False
    (line,) = store.case_lines()
    assert [j.grade for j in line.judgments] == [1.0]
    with pytest.raises(UsageError, match="gave no word"):
        store.settle(case, "cid", "dan")


def test_a_second_reviewer_is_blind_until_done(store: SqlStore) -> None:
    """Before, they see their own words only; afterwards, all."""
    (case,) = put(store, "one")
    store.judge(case, "ann", "a", 1)
    store.finish(case, "ann", "labelled", notes="clear")
    given = store.claim("bea", second=True)
    assert given is not None
    blind = store.case(case, "bea")
    assert (blind.judgments, blind.reviews, blind.notes) == ((), (), None)
    assert not any(s.who == "ann" and s.action != "note" for s in blind.history)
    store.judge(case, "bea", "a", 1)
    store.finish(case, "bea", "labelled")
    assert len(store.case(case, "bea").judgments) == 2
    assert store.claim("bea", second=True) is None


def test_judging_the_same_twice_changes_nothing(store: SqlStore) -> None:
    """A retry after a lost answer is answered with the same revision."""
    (case,) = put(store, "one")
    first = store.judge(case, "ann", "a", 1)
    assert store.judge(case, "ann", "a", 1) == first
    assert len(store.case(case).history) == 1


def test_grades_have_bounds(store: SqlStore) -> None:
    """Not below 0, not above 10."""
    (case,) = put(store, "one")
    with pytest.raises(InputError, match="grade from 0 to 10"):
        store.judge(case, "ann", "a", -1)


def test_what_was_done_is_undone_in_reverse(store: SqlStore) -> None:
    """Finish, then both grades, across cases; then there is nothing left."""
    one, two = put(store, "one", "two")
    store.judge(one, "ann", "a", 0)
    store.judge(one, "ann", "a", 1)
    store.finish(one, "ann", "labelled")
    store.judge(two, "ann", "b", 1)
    store.judge(two, "bea", "b", 0)
    undone = [step.action for step in iter(lambda: store.undo("ann"), None)]
    assert undone == ["judge", "finish", "judge", "judge"]
    assert store.case(one).case.state == "candidate"
    assert store.case(one).judgments == ()
    assert [j.reviewer for j in store.case(two).judgments] == ["bea"]


def test_undoing_a_changed_grade_brings_the_first_back(store: SqlStore) -> None:
    """The history holds both."""
    (case,) = put(store, "one")
    store.judge(case, "ann", "a", 0)
    store.judge(case, "ann", "a", 1)
    store.undo("ann", case)
    assert [j.grade for j in store.case(case).judgments] == [0.0]
    assert [s.undone for s in store.case(case).history] == [False, True]


def test_a_skipped_case_goes_to_somebody_else(store: SqlStore) -> None:
    """It is counted, stays in the queue, and is not given to the same person again."""
    (case,) = put(store, "one")
    store.claim("ann")
    assert store.finish(case, "ann", "skipped").skips == 1
    assert store.claim("ann") is None
    given = store.claim("bea")
    assert given is not None
    assert given.state == "in_review"


def test_nothing_a_reviewer_removed_comes_back(store: SqlStore) -> None:
    """Asked again, sampled again, imported again: the case stays rejected."""
    (case,) = put(store, "one")
    store.finish(case, "ann", "rejected")
    store.enqueue([candidate("ONE")])
    store.sync_hour(plan(), [candidate("one", draw("e1"))])
    line = CaseLine(case_id="x", query="one", pipeline="bot", judgments=[Judgment(passage_id="a", grade=1)])
    store.import_cases([line], "imp")
    (only,) = store.case_page()
    assert (only.state, only.case_id) == ("rejected", case)
    assert store.claim("bea") is None


def test_weights_add_up_the_draws_of_a_question(store: SqlStore) -> None:
    """Two events at p = 0.1 and 0.5 stand for 12."""
    drawn = [candidate("One?", draw("e1")), candidate("one", draw("e2", 0.5))]
    assert store.sync_hour(plan(), drawn) == {"e1", "e2"}
    (only,) = store.case_page()
    assert (only.weight, only.seen, only.p, only.event_id) == (12.0, 2, 0.1, "e1")


def test_an_hour_that_falls_in_rate_gives_back_what_nobody_touched(store: SqlStore) -> None:
    """The case goes where no person had it in hand, and stays for no traffic where one had."""
    store.sync_hour(plan(), [candidate("one", draw("e1")), candidate("two", draw("e2"))])
    (two,) = store.case_page(Filter(words="two"))
    store.judge(two.case_id, "ann", "a", 1)
    store.sync_hour(plan(counts={"uniform": 2.0}), [])
    (only,) = store.case_page()
    assert (only.case_id, only.weight) == (two.case_id, 0.0)
    assert len(store.plans("bot")) == 1


def test_publishing_an_hour_again_brings_its_probabilities_up_to_date(store: SqlStore) -> None:
    """Draws that stay get the p of the new plan; none is counted as new."""
    store.sync_hour(plan(), [candidate("one", draw("e1", 0.5))])
    assert store.sync_hour(plan(counts={"uniform": 9.0}), [candidate("one", draw("e1", 0.25))]) == set()
    assert store.case_page()[0].weight == 4.0


def test_pages_follow_each_other_without_gap_or_overlap(store: SqlStore) -> None:
    """In random order, which is the same for everybody."""
    put(store, *(f"question number {i}" for i in range(23)))
    seen: list[str] = []
    after: Place | None = None
    while page := store.case_page(Filter(pipeline="bot"), after, 5):
        seen += [row.case_id for row in page]
        after = Place(page[-1].place, page[-1].case_id)
    assert len(seen) == len(set(seen)) == 23
    assert seen != sorted(seen)


def test_filters_narrow_the_queue(store: SqlStore) -> None:
    """By words, state, stratum and split together."""
    one, _ = put(store, "where is my refund", "reset the password")
    store.finish(one, "ann", "unanswerable")
    assert store.case_count(Filter(words="REFUND where")) == 1
    assert store.case_count(Filter(states=("unanswerable",))) == 1
    assert store.case_count(Filter(states=("candidate",), words="refund")) == 0
    assert store.case_count(Filter(words="100%")) == 0


def events_of(*ids: str, user: str = "u") -> list[RetrievalEvent]:
    """Give sampled events."""
    return [
        RetrievalEvent(
            id=i, ts=SINCE + 60, pipeline="bot", config="cccccccccccc", query=f"secret {i}", user_key=user
        )
        for i in ids
    ]


def test_a_users_events_take_their_cases_along(store: SqlStore, post: Callable[..., bool]) -> None:
    """The text is gone from every table; the case of another user stays."""
    post(store, events=[*events_of("e1"), *events_of("e2", user="v")])
    store.sync_hour(
        plan(), [candidate("secret e1", draw("e1", user="u")), candidate("secret e2", draw("e2", user="v"))]
    )
    mine = next(r for r in store.case_page() if r.query == "secret e1")
    store.judge(mine.case_id, "ann", "a", 1)
    store.finish(mine.case_id, "ann", "labelled", notes="about secret e1")
    assert store.delete_user("u") == 1
    assert [r.query for r in store.case_page()] == ["secret e2"]
    assert b"secret e1" not in _dump(store)


def _dump(store: SqlStore) -> bytes:
    from sqlalchemy import select

    from resweep.store.schema import metadata

    with store._db.read() as connection:
        rows = [tuple(row) for t in metadata.sorted_tables for row in connection.execute(select(t))]
    return repr(rows).encode()


def test_a_kept_case_outlives_its_events(store: SqlStore, post: Callable[..., bool]) -> None:
    """Where a reviewer says so; whose it was is forgotten."""
    post(store, events=events_of("e1"))
    store.sync_hour(plan(), [candidate("one", draw("e1", user="u"))])
    (only,) = store.case_page()
    store.keep_case(only.case_id, "ann")
    store.delete_user("u")
    assert store.case(only.case_id).draws[0].user_key is None


def test_a_case_that_others_asked_too_takes_their_words(store: SqlStore, post: Callable[..., bool]) -> None:
    """Its weight falls by what went."""
    post(store, events=[*events_of("e1"), *events_of("e2", user="v")])
    drawn = [candidate("one", draw("e1")), candidate("ONE", draw("e2", 0.5))]
    store.sync_hour(plan(), drawn)
    store.delete_events(["e1"])
    (only,) = store.case_page()
    assert (only.query, only.weight, only.event_id) == ("secret e2", 2.0, "e2")


def test_candidates_go_with_age_and_labelled_cases_stay(store: SqlStore, clock: VirtualClock) -> None:
    """Nobody looked at the one; somebody's work is in the other."""
    one, _two = put(store, "one", "two")
    store.finish(one, "ann", "labelled")
    clock.ts = NOW + 40 * 86_400
    assert store.housekeep().cases == 1
    assert [r.case_id for r in store.case_page()] == [one]


def test_hours_of_the_pool_tell_events_and_bad_words(store: SqlStore, post: Callable[..., bool]) -> None:
    """A good word is no reason to look; a bad one is."""
    post(store, events=events_of("e1", "e2", "e3"))
    post(
        store,
        feedback=[Feedback("f1", "e1", "negative", "u", NOW), Feedback("f2", "e2", "positive", "u", NOW)],
    )
    (hour,) = store.pool_hours(0.0)
    assert (hour.pipeline, hour.since, hour.events, hour.negative) == ("bot", SINCE, 3, 1)
    assert store.bad_words("bot", SINCE, SINCE + HOUR) == {"e1"}


def test_cases_come_back_as_they_went_out(store: SqlStore) -> None:
    """Exported, deleted and imported: the same lines, state and judgments and weights included."""
    store.sync_hour(plan(), [candidate("one", draw("e1")), candidate("two", draw("e2", 0.5))])
    for row in store.case_page():
        store.judge(row.case_id, "ann", "a", 1, "ta")
        store.finish(row.case_id, "ann", "labelled", reference_answer="yes", required=[["a"], ["b"]])
    before = list(store.case_lines())
    store.delete_cases([line.case_id for line in before])
    assert [i.outcome for i in store.import_cases(before, "imp")] == ["new", "new"]
    assert list(store.case_lines()) == before


def test_importing_twice_changes_nothing_but_the_count(store: SqlStore) -> None:
    """The same file again merges; higher grades win."""
    line = CaseLine(case_id="q1", query="one", pipeline="bot", judgments=[Judgment(passage_id="a", grade=1)])
    store.import_cases([line], "imp")
    assert store.import_cases([line], "imp")[0].outcome == "merged"
    (only,) = store.case_lines()
    assert (only.case_id, only.seen, [j.grade for j in only.judgments]) == ("q1", 2, [1.0])
    assert only.weight is None


def test_imports_leave_a_persons_word_alone(store: SqlStore) -> None:
    """What somebody judged here is not overwritten by a file."""
    (case,) = put(store, "one")
    store.judge(case, "ann", "a", 0)
    store.finish(case, "ann", "labelled")
    line = CaseLine(case_id="x", query="one", pipeline="bot", judgments=[Judgment(passage_id="a", grade=1)])
    assert store.import_cases([line], "imp")[0].outcome == "kept"
    assert [j.grade for j in next(iter(store.case_lines())).judgments] == [0.0]


def test_deletion_by_age_takes_judged_cases_too_unless_they_are_kept(
    store: SqlStore, post: Callable[..., bool]
) -> None:
    """On request everything of before a time goes; the other case is a reviewer's to keep."""
    post(store, events=events_of("e1", "e2"))
    store.sync_hour(plan(), [candidate("secret e1", draw("e1")), candidate("secret e2", draw("e2"))])
    ids = {row.query: row.case_id for row in store.case_page()}
    store.finish(ids["secret e1"], "ann", "labelled")
    store.keep_case(ids["secret e2"], "ann")
    assert store.delete_older(SINCE + 60) == 0
    assert store.delete_older(SINCE + 61) == 2
    assert [row.query for row in store.case_page()] == ["secret e2"]
    assert b"secret e1" not in _dump(store)


def test_what_a_user_said_goes_with_the_user(store: SqlStore, post: Callable[..., bool]) -> None:
    """Also of the events of others."""
    post(store, events=events_of("e1", user="v"))
    store.add_feedback([Feedback("f1", "e1", "negative", "u", NOW)])
    store.delete_user("u")
    assert store.event("e1") is not None
    assert b"'u'" not in _dump(store)


def test_a_frozen_canary_goes_when_its_event_grows_old(
    store: SqlStore, clock: VirtualClock, post: Callable[..., bool]
) -> None:
    """It holds the words of somebody's question; one from a file stays."""
    post(store, events=events_of("e1"))
    store.set_canaries("bot", "event", [CanaryQuery(id="q1", query="secret e1", event_id="e1")])
    store.set_canaries("bot", "file", [CanaryQuery(id="q2", query="open hours")])
    clock.ts = NOW + 40 * 86_400
    store.housekeep()
    assert [one.id for one in store.canaries("bot")] == ["q2"]


def test_an_empty_answer_takes_the_old_one_away_and_silence_keeps_it(store: SqlStore) -> None:
    """Nothing can be unsaid otherwise."""
    (one,) = put(store, "one")
    store.finish(one, "ann", "labelled", reference_answer="blue", notes="n", required=[["a"]])
    store.finish(one, "ann", "labelled")
    assert (store.case(one).reference_answer, store.case(one).required) == ("blue", (("a",),))
    store.finish(one, "ann", "labelled", reference_answer="", required=[])
    assert (store.case(one).reference_answer, store.case(one).notes, store.case(one).required) == (
        None,
        "n",
        (),
    )
