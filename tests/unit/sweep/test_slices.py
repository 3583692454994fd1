"""Parts of the set that the mean hides."""

from __future__ import annotations

from resweep.sweep.clusters import clusters
from resweep.sweep.engine import sweep_lists
from resweep.sweep.language import language
from resweep.sweep.lists import Case, RankedList
from resweep.sweep.settings import SweepSettings


def test_slices_out_of_the_box() -> None:
    """Relevant passages, query length, language, source of the evidence, and the cases' own: counted."""
    cases = [
        Case(
            case_id=f"c{i}",
            query=("how long do refunds take to arrive", "wie lange dauert das")[i % 2],
            judgments={"a": 1.0} | ({"b": 1.0} if i < 10 else {}),
            slices={"team": ("billing", "tech")[i % 2]},
        )
        for i in range(40)
    ]
    lists = {
        c.case_id: RankedList(["a", "b"], sources=[("faq", "blog")[i < 10], None])
        for i, c in enumerate(cases)
    }
    report = sweep_lists(cases, {2: lists}, [1, 2], SweepSettings(resamples=500)).report
    assert {f"{part['name']}={part['value']}": part["n"] for part in report.slices} == {
        "relevant_passages=1": 30,
        "relevant_passages=2": 10,
        "query_words=1-4": 20,
        "query_words=5-9": 20,
        "language=de": 20,
        "language=en": 20,
        "source=blog": 10,
        "source=faq": 30,
        "team=billing": 20,
        "team=tech": 20,
    }


def test_a_slice_has_its_own_estimates() -> None:
    """Two relevant passages of which one is found at k = 1: recall 0.5 there, 1.0 in the rest."""
    cases = [Case(case_id=f"c{i}", judgments={"a": 1.0} | ({"b": 1.0} if i < 15 else {})) for i in range(40)]
    lists = {case.case_id: RankedList(["a", "x", "b"]) for case in cases}
    settings = SweepSettings(objective="recall", resamples=500)
    report = sweep_lists(cases, {3: lists}, [1], settings).report
    two = next(part for part in report.slices if part["value"] == "2")
    recall = two["points"][0]["measures"]["recall"]
    assert (recall["mean"], recall["n"], recall["median"], recall["share_above"]) == (0.5, 15, 0.5, 0.0)
    assert any(f["code"] == "slices" and "relevant_passages=2" in f["text"] for f in report.diagnosis)


def test_a_critical_slice_is_shown_however_small() -> None:
    """One case of it, or none at all: it stands in the report, marked."""
    cases = [
        Case(case_id=f"c{i}", judgments={"a": 1.0}, slices={"topic": "rare" if i == 0 else "usual"})
        for i in range(20)
    ]
    lists = {case.case_id: RankedList(["a"]) for case in cases}
    settings = SweepSettings(critical=("topic=rare", "topic=legal"), resamples=500)
    report = sweep_lists(cases, {1: lists}, [1], settings).report
    critical = {part["value"]: part for part in report.slices if part["critical"]}
    assert critical["rare"]["n"] == 1
    assert critical["legal"]["n"] == 0
    assert critical["legal"]["points"][0]["measures"]["recall"]["mean"] is None


def test_languages_are_guessed_from_little_words_and_script() -> None:
    """Enough for slicing, honest where it cannot tell."""
    assert language("How do I reset my password?") == "en"
    assert language("Wie kann ich mein Passwort zurücksetzen?") == "de"
    assert language("Comment réinitialiser mon mot de passe pour la facture ?") == "fr"
    assert language("Как сбросить пароль?") == "cyrillic"
    assert language("パスワード リセット") == "katakana"
    assert language("ERR_0042") == "latin"
    assert language("404") == "none"


def test_clusters_are_topics_and_do_not_change() -> None:
    """Two topics of 40 queries fall apart into two named clusters, alike on every run."""
    queries = [f"refund invoice payment {word}" for word in "abcdefghij"] * 4
    queries += [f"install driver kernel {word}" for word in "abcdefghij"] * 4
    queries += ["gardening"] * 20
    found = clusters(queries)
    assert len(set(found[:40])) == 1
    assert len(set(found[40:80])) == 1
    assert found[0] != found[40]
    assert found == clusters(queries)


def test_few_queries_have_no_clusters() -> None:
    """Below 60 with text there is nothing to tell apart."""
    assert set(clusters(["refund invoice"] * 59 + [None])) == {"unknown"}
