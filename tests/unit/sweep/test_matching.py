"""Gold is matched by id or by text, each gold passage at most once."""

from __future__ import annotations

from resweep.domain.measures import measure_case
from resweep.sweep.lists import Case, RankedList
from resweep.sweep.matching import match


def test_the_same_text_under_two_ids_is_one_passage() -> None:
    """n0..n9 with texts in pairs: 5 different passages; the judged one counts at its first place."""
    ranked = RankedList([f"n{i}" for i in range(10)], text_hashes=[f"t{i // 2}" for i in range(10)])
    found = match(Case(case_id="c", judgments={"n1": 1.0}), ranked)
    assert len(set(found.ranking)) == 5
    assert measure_case(found.ranking, found.judgments, 1)["recall"] == 1.0
    assert measure_case(found.ranking, found.judgments, 2)["precision"] == 0.5


def test_two_judged_copies_are_one_piece_of_evidence() -> None:
    """Both copies judged relevant: R is 1."""
    ranked = RankedList(["n0", "n1"], text_hashes=["t", "t"])
    assert len(match(Case(case_id="c", judgments={"n0": 1.0, "n1": 1.0}), ranked).judgments) == 1


def test_a_judgment_follows_its_text_to_a_new_id() -> None:
    """After a re-ingest the id is new and the text is not."""
    case = Case(case_id="c", judgments={"old": 1.0}, text_hashes={"old": "t"})
    found = match(case, RankedList(["x", "new"], text_hashes=["u", "t"]))
    assert measure_case(found.ranking, found.judgments, 2)["mrr"] == 0.5


def test_an_id_that_now_stands_for_another_text_is_not_found() -> None:
    """Chunks numbered by position: the id is back, the text is not, and it is counted for repair."""
    case = Case(case_id="c", judgments={"c12": 1.0}, text_hashes={"c12": "t"})
    found = match(case, RankedList(["c12"], text_hashes=["other"]))
    assert measure_case(found.ranking, found.judgments, 1)["recall"] == 0.0
    assert found.moved == 1


def test_without_text_the_id_decides() -> None:
    """A list without hashes, or a passage without one, matches by id."""
    case = Case(case_id="c", judgments={"p": 1.0}, text_hashes={"p": "t"})
    for hashes in ((), (None,)):
        found = match(case, RankedList(["p"], text_hashes=hashes))
        assert measure_case(found.ranking, found.judgments, 1)["recall"] == 1.0


def test_required_facts_are_named_alike() -> None:
    """A fact stated by a judged passage is found under the passage's new id."""
    case = Case(case_id="c", judgments={"old": 1.0}, text_hashes={"old": "t"}, required=[frozenset({"old"})])
    found = match(case, RankedList(["new"], text_hashes=["t"]))
    assert found.required == [frozenset(found.ranking)]
