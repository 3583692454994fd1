"""`resweep sweep` and what it hands over: the object, the estimate, the page, the lock entry."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from resweep.domain.fingerprint import fingerprint
from resweep.serve.cli.app import app
from resweep.store.lockfile import read_lock

Run = Callable[..., Result]
MODULE = """
asked = []

class Retriever:
    def __init__(self):
        self.k = 4

    def retrieve(self, query):
        asked.append((query, self.k))
        n = int(query.split()[1])
        return [{"id": f"d{(i - n) % 12}", "text": f"text {i}", "source": "a.md"} for i in range(self.k)]

retriever = Retriever()

def reranked(query, candidate_k, k):
    n = int(query.split()[1])
    return [{"id": f"d{(i - n) % 12}"} for i in range(candidate_k)][::-1][:k]
"""
CONFIG = {"pipeline": "bot", "config": {"embedder": {"model": "m1"}, "context_k": 4, "candidate_k": 4}}


@pytest.fixture(name="run")
def _run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Run a command in a folder with a retriever, 40 labelled cases and a config."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RESWEEP_HOME", str(tmp_path / "home"))
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("swept_app.py").write_text(MODULE)
    Path("rag.json").write_text(json.dumps(CONFIG))
    lines = [
        {
            "case_id": f"c{i}",
            "query": f"question {i % 8}",
            "state": "labelled",
            "split": "holdout" if i % 4 == 0 else "tune",
            "judgments": [{"passage_id": "d0", "grade": 1}, {"passage_id": "d1", "grade": 1}],
        }
        for i in range(40)
    ]
    Path("cases.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    yield lambda *words: CliRunner().invoke(app, list(words))
    sys.modules.pop("swept_app", None)


LIVE = ("sweep", "--retriever", "swept_app:retriever", "--cases", "cases.jsonl", "--k", "1,2,4,8,10")


def report(run: Run, *words: str) -> dict[str, Any]:
    """Return the object that a sweep prints."""
    done = run(*LIVE, "--config", "rag.json", "--objective", "recall", *words, "--json")
    assert done.exit_code == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_live_sweep_prints_the_documented_object(run: Run) -> None:
    """With the pipeline and basis of the config, confirmed on the holdout."""
    told = report(run)
    assert (told["schema"], told["pipeline"]) == ("resweep.report/1", "bot")
    assert told["basis_hash"] == fingerprint(CONFIG["config"]).basis_hash
    assert [point["state"] for point in told["points"]] == ["measured"] * 5
    assert told["chosen"]["context_k"] == 8
    assert (told["n_cases"], told["n_holdout"], told["holdout"]["agrees"]) == (30, 10, True)
    assert (told["measured"]["how"], told["labelled_set"]["cases"]) == ("live", 40)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--objective", "nonsense"), "expected an objective among"),
        (("--objective", "answer_accuracy"), "it needs answers"),
        (("--baseline", "9"), "expected --baseline among the depths 1, 2, 4"),
        (("--critical", "nonsense"), "expected a critical slice as name=value"),
        (("--constraint", "foo"), "expected a constraint"),
        (("--margin", "-3"), "a margin from 0"),
        (("--objective", "evidence_coverage"), "expected cases with `required` facts"),
        (("--constraint", "answer_accuracy >= 0.7"), "got `answer_accuracy`: it needs answers"),
        (("--generator", "a:b", "--judge", "a:b"), "expected cases with a `reference_answer`"),
        (
            ("--generator", "a:b", "--judge", "a:b", "--objective", "faithfulness"),
            "expected an objective among",
        ),
        (("--record",), "expected --config FILE"),
        (("--look", "4"), "expected at most 3 looks at the holdout"),
        (("--html", "no/such/folder.html"), "expected a folder for no/such/folder.html"),
        (("--generator", "a:b", "--judge", "a:b", "--max-usd", "5"), "expected --price and --judge-price"),
        (("--ragas", "context_precision", "--judge", "a:b"), "expected cases with a `reference_answer`"),
        (("--constraint", "ragas_context_precision >= 0.5"), "it needs --ragas"),
        (("--objective", "ragas_context_precision"), "expected an objective among"),
        (("--ragas", "context_precision", "--max-usd", "5"), "expected --price and --judge-price"),
        (("--superseded", "no-such.txt"), "expected a readable file at no-such.txt"),
        (("--seed", "-1"), "--seed"),
        (("--max-calls", "-3"), "--max-calls"),
        (("--price", "-1"), "--price"),
        (("--write-lock",), "expected --config FILE"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_a_call(words: tuple[str, ...], says: str, run: Run) -> None:
    """Calls may be dear."""
    done = run(*LIVE, *words)
    assert (done.exit_code, says in done.stderr) == (2, True)
    assert "swept_app" not in sys.modules


def test_the_choice_is_set_against_the_baseline_in_words(run: Run) -> None:
    """Which k, what it gains, on how many cases."""
    told = run(*LIVE, "--baseline", "1").stdout
    assert "against k = 1: ndcg " in told
    assert " cases gained, " in told


def test_cases_of_which_none_can_be_used_are_refused(run: Run) -> None:
    """With the first reason; a sweep of nothing is no sweep."""
    Path("bad.jsonl").write_text('{"case_id": "c1", "query": "q", "judgments": [{"id": "d1", "grade": 1}]}\n')
    done = run("sweep", "--retriever", "swept_app:retriever", "--cases", "bad.jsonl", "--k", "1,2")
    assert done.exit_code == 2
    assert "bad.jsonl: none of 1 cases can be used; line 1: expected" in done.stderr


def test_a_dry_run_asks_for_nothing_and_says_the_cost(run: Run) -> None:
    """Equal questions are asked once: 8 texts, 5 depths."""
    done = run(*LIVE, "--config", "rag.json", "--dry-run", "--json")
    assert done.exit_code == 0
    told = json.loads(done.stdout)
    assert (told["schema"], told["cases"], told["most"], told["cached"]) == ("resweep.estimate/1", 40, 40, 0)
    assert sys.modules["swept_app"].asked == []


def test_a_dry_run_tells_of_answers_too(run: Run) -> None:
    """Each of the cases with a reference at every depth, and without any passage."""
    rows = [json.loads(line) for line in Path("cases.jsonl").read_text().splitlines()]
    for row in rows[:10]:
        row["reference_answer"] = "so"
    Path("cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    models = ("--generator", "https://127.0.0.1:9/v1#g", "--judge", "https://127.0.0.1:9/v1#j")
    done = run(*LIVE, *models, "--dry-run", "--json")
    told = json.loads(done.stdout)
    assert (told["answers"], told["verdicts"]) == (60, 60)
    assert "at most 60 to make and 60 to judge" in done.stderr


def with_references() -> None:
    """Give every case a reference answer."""
    rows = [json.loads(line) for line in Path("cases.jsonl").read_text().splitlines()]
    Path("cases.jsonl").write_text(
        "".join(json.dumps(row | {"reference_answer": "so"}) + "\n" for row in rows)
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--ragas", "context_precision"), "expected --judge with --ragas"),
        (("--ragas", "context_precision", "--judge", "swept_app:j"), "expected an endpoint as --judge"),
        (("--ragas", "recall", "--judge", "http://127.0.0.1:9/v1#j"), "expected --ragas among context_prec"),
    ],
)
def test_ragas_needs_an_endpoint_to_ask(words: tuple[str, ...], says: str, run: Run) -> None:
    """Refused before a call."""
    with_references()
    done = run(*LIVE, *words)
    assert (done.exit_code, says in done.stderr) == (2, True)
    assert "swept_app" not in sys.modules


def test_superseded_passages_are_counted_in_the_contexts_of_a_sweep(run: Run) -> None:
    """d0 stands at rank n + 1 of question n: 5 tuning cases each of questions 1, 2, 3, 5, 6 and 7."""
    Path("old.txt").write_text("d0\n")
    told = report(run, "--superseded", "old.txt")["superseded"]
    assert (told["listed"], told["citations"]) == (1, None)
    assert [point["holding"] for point in told["points"]] == [0, 5, 15, 30, 30]
    assert "with 1 superseded passages listed" in run(*LIVE, "--superseded", "old.txt").stdout


def test_a_second_sweep_asks_for_nothing_a_fresh_one_for_all(run: Run) -> None:
    """Answers are kept between commands."""
    first = report(run)
    asked = len(sys.modules["swept_app"].asked)
    again = report(run)
    assert asked == 24  # 8 texts at 10, and 4 of them at the 4 smaller depths
    assert len(sys.modules["swept_app"].asked) == asked
    assert again["points"][0]["measures"] == first["points"][0]["measures"]
    report(run, "--fresh")
    assert len(sys.modules["swept_app"].asked) == 48


def test_a_budget_that_cannot_suffice_ends_with_6(run: Run) -> None:
    """Before anything is asked."""
    done = run(*LIVE, "--max-calls", "3")
    assert done.exit_code == 6
    assert "nothing was asked" in done.stderr


def test_a_grid_is_swept_over_candidates(run: Run) -> None:
    """Impossible cells are marked; the table names both depths."""
    words = ("sweep", "--retriever", "swept_app:reranked", "--cases", "cases.jsonl", "--k", "2,8")
    done = run(*words, "--candidate-k", "4,10", "--objective", "recall", "--json")
    told = json.loads(done.stdout)
    states = [(p["candidate_k"], p["context_k"], p["state"]) for p in told["points"]]
    assert states == [
        (4, 2, "measured"),
        (4, 8, "impossible"),
        (10, 2, "measured"),
        (10, 8, "measured"),
    ]
    assert told["methods"]["grid"] is True
    assert "impossible: only 4 candidates" in run(*words, "--candidate-k", "4,10").stdout


def test_the_lock_entry_says_what_it_stands_on(run: Run) -> None:
    """And `check` finds it valid for the config with the new depth."""
    told = report(run, "--write-lock", "--constraint", "recall >= 0.5", "--baseline", "10")
    entry = read_lock("resweep.lock").entries[0]
    assert (entry.pipeline, entry.context_k, entry.candidate_k) == ("bot", 8, None)
    assert entry.best_set == tuple(told["best_set"])
    assert (entry.objective, entry.report) == ("recall", told["report_id"])
    assert entry.constraints == {"text": "recall >= 0.5"}
    assert entry.labelled_set == {**told["labelled_set"], "effective": 30.0}
    assert entry.grid["8"] == round(told["points"][3]["measures"]["recall"]["mean"], 4)
    assert entry.weak_cases == tuple(one["case_id"] for one in told["regressions"])
    Path("new.json").write_text(json.dumps({**CONFIG, "config": {**CONFIG["config"], "context_k": 8}}))  # type: ignore[dict-item]
    checked = json.loads(run("check", "new.json", "--json").stdout)
    assert (checked["state"], checked["tuned"]["report"]) == ("valid", told["report_id"])


def test_a_lock_entry_needs_a_config(run: Run) -> None:
    """A record for nothing in particular would hold for anything."""
    done = run(*LIVE, "--write-lock", "--config", "rag.json", "--constraint", "recall >= 2")
    assert done.exit_code == 2
    assert "chose no depth" in done.stderr
    assert not Path("resweep.lock").exists()


def test_a_report_is_accepted_with_its_evidence(run: Run) -> None:
    """Of a pipeline that no agent has seen yet, by the config it was swept with."""
    told = report(run, "--save", "kept")
    done = run("accept", "bot", "--report", "kept/report.json", "--lock", "resweep.lock", "--json")
    assert done.exit_code == 0, done.stderr
    tuned = json.loads(done.stdout)["tuned"][0]
    assert (tuned["context_k"], tuned["candidate_k"], tuned["basis"]) == (8, None, told["basis_hash"])
    assert (tuned["best_set"], tuned["report"]) == (told["best_set"], told["report_id"])
    assert tuned["because"].startswith(f"sweep {told['report_id']}: 30 cases by recall")
    assert tuned["labelled_set"]["revision"] == told["labelled_set"]["revision"]


def test_a_report_that_is_accepted_or_recorded_is_kept_once(run: Run) -> None:
    """By the agent's store while no agent runs; its id finds it."""
    from resweep.domain.clock import SystemClock
    from resweep.store import StoreSettings, open_store

    told = report(run, "--record", "--save", "kept")
    assert run("accept", "bot", "--report", "kept").exit_code == 0
    store = open_store("sqlite:///home/resweep.db", clock=SystemClock(), settings=StoreSettings())
    try:
        assert [one["report_id"] for one in store.reports("bot")] == [told["report_id"]]
        assert store.report(told["report_id"]) == told
        assert store.report_cases(told["report_id"]) == Path("kept/cases.jsonl.gz").read_bytes()
    finally:
        store.close()


def test_another_depth_of_the_best_set_may_be_accepted_no_other(run: Run) -> None:
    """A person decides among those that cannot be told apart."""
    report(run, "--save", "kept")
    assert run("accept", "bot", "--report", "kept", "--k", "10").exit_code == 0
    done = run("accept", "bot", "--report", "kept", "--k", "2")
    assert done.exit_code == 2
    assert "expected a depth of the report's best set (8, 10), got 2" in done.stderr


def test_a_report_of_another_pipeline_is_refused(run: Run) -> None:
    """By its name."""
    report(run, "--save", "kept")
    done = run("accept", "other", "--report", "kept")
    assert (done.exit_code, "is a report on 'bot'" in done.stderr) == (2, True)


def test_a_report_of_another_basis_is_refused_once_a_config_runs(run: Run) -> None:
    """Its depth was measured for something that does not run."""
    assert run("accept", "bot", "--k", "4", "--config", "rag.json").exit_code == 0
    report(run, "--save", "kept")
    Path("rag.json").write_text(
        json.dumps({**CONFIG, "config": {"embedder": {"model": "m2"}, "context_k": 4}})
    )
    done = run("accept", "bot", "--report", "kept", "--config", "rag.json")
    assert done.exit_code == 2
    assert "measured for basis" in done.stderr


def test_what_is_missing_is_said(run: Run) -> None:
    """Cases first, then what to sweep."""
    assert "expected labelled cases" in run("sweep").stderr
    assert "expected what to sweep" in run("sweep", "--cases", "cases.jsonl").stderr


def test_cases_asked_under_a_filter_take_no_part_where_the_retriever_takes_none(run: Run) -> None:
    """Another system than the traffic's would be measured; where nothing is left, nothing is swept."""
    lines = [json.loads(line) for line in Path("cases.jsonl").read_text().splitlines()]
    lines[0]["filters"] = {"tenant": "acme"}
    Path("cases.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    words = ("sweep", "--retriever", "swept_app:retriever", "--cases", "cases.jsonl", "--k", "1,2", "--json")
    told = json.loads(run(*words).stdout)
    note = (
        f"1 of {len(lines)} cases were asked under a filter, and this retriever takes none: they take no part"
    )
    assert note in told["notes"]
    Path("cases.jsonl").write_text(json.dumps(lines[0]) + "\n")
    done = run(*words)
    assert (done.exit_code, "name one that takes `filters`" in done.stderr) == (2, True)


def test_the_settings_file_spares_the_flags(run: Run) -> None:
    """`resweep sweep` alone."""
    Path("resweep.toml").write_text(
        '[sweep]\nretriever = "swept_app:retriever"\ncases = "cases.jsonl"\nconfig = "rag.json"\n'
    )
    done = run("sweep", "--k", "1,2,4", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["pipeline"] == "bot"


def test_the_agents_labelled_set_is_swept_by_the_pipelines_name(run: Run) -> None:
    """Whose cases they are is known; without any, that is said."""
    words = ("sweep", "bot", "--retriever", "swept_app:retriever", "--k", "1,2,4", "--json")
    assert "expected labelled cases of bot, got 0 unlabelled" in run(*words).stderr
    imported = run("cases", "import", "cases.jsonl", "--pipeline", "bot")
    assert imported.exit_code == 0, imported.stderr
    told = json.loads(run(*words).stdout)
    assert told["n_cases"] + told["n_holdout"] == 8  # forty rows, eight questions
    assert told["notes"][0] == "the agent's labelled set of bot"


def test_the_page_is_one_file(run: Run) -> None:
    """No script, nothing from outside."""
    report(run, "--html", "report.html")
    page = Path("report.html").read_text("utf-8")
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "")
    assert "k = 8" in page


def test_recorded_lists_give_equal_bytes_each_time(run: Run) -> None:
    """No clock in it."""
    Path("a.run").write_text(
        "".join(f"c{i} Q0 d{j} {j + 1} {9 - j} t\n" for i in range(40) for j in range(8))
    )
    words = ("sweep", "--run", "a.run", "--qrels", "cases.jsonl", "--k", "1,2,4", "--json")
    first, second = run(*words).stdout, run(*words).stdout
    assert first == second
    assert json.loads(first)["measured"] == {"how": "recorded", "run": "a.run"}


LISTS = ("sweep", "--run", "a.run", "--qrels", "cases.jsonl", "--k", "1,2,4")


@pytest.fixture(name="lists")
def _lists(run: Run) -> None:
    Path("a.run").write_text(
        "".join(f"c{i} Q0 d{j} {j + 1} {9 - j} t\n" for i in range(40) for j in range(8))
    )


@pytest.mark.usefixtures("lists")
class TestRecordedLists:
    """What goes with lists that were retrieved before, and what does not."""

    @pytest.mark.parametrize(
        "words",
        [
            ("--retriever", "swept_app:retriever"),
            ("--candidate-k", "2,4"),
            ("--audit", "audit.jsonl"),
            ("--evidence-first",),
            ("--generator", "a:b", "--judge", "a:b"),
        ],
    )
    def test_what_they_cannot_do_is_refused(self, words: tuple[str, ...], run: Run) -> None:
        """Passed over in silence it would mislead."""
        done = run(*LISTS, *words)
        assert done.exit_code == 2
        assert f"got --run with {words[0]}" in done.stderr or "reference_answer" in done.stderr

    def test_a_budget_bounds_nothing_and_that_is_said(self, run: Run) -> None:
        """No call is made, whatever the budget."""
        told = json.loads(run(*LISTS, "--max-calls", "1", "--max-usd", "0", "--json").stdout)
        assert told["notes"] == ["--max-calls, --max-usd bounds nothing: recorded lists take no call"]

    def test_a_dry_run_costs_no_call(self, run: Run) -> None:
        """And sweeps nothing."""
        told = json.loads(run(*LISTS, "--dry-run", "--json").stdout)
        assert told == {"schema": "resweep.estimate/1", "cases": 40, "least": 0, "most": 0, "cached": 0}

    def test_they_are_recorded_with_a_config_alone(self, run: Run) -> None:
        """Refused before the sweep where nobody says what the depth is valid for."""
        done = run(*LISTS, "--record", "--pipeline", "bot", "--save", "kept")
        assert (done.exit_code, "expected --config FILE" in done.stderr) == (2, True)
        assert not Path("kept").exists()
        assert run(*LISTS, "--record", "--config", "rag.json").exit_code == 0

    def test_lines_of_events_that_cannot_be_used_are_told(self, run: Run) -> None:
        """With number and reason, the first twenty of them; the rest goes in."""
        event = {"type": "event", "ts": 1.0, "pipeline": "bot", "asked": 4, "hits": [{"id": "d0"}]}
        rows = [json.dumps({**event, "id": f"e{i}", "query": f"question {i}"}) for i in range(8)]
        config = json.dumps({"type": "config", "pipeline": "bot", "config": {"context_k": 4}})
        Path("live.jsonl").write_text("\n".join([config, *rows, *(["no event"] * 22)]) + "\n")
        words = ("sweep", "--run", "live.jsonl", "--cases", "cases.jsonl", "--k", "1", "--json")
        told = json.loads(run(*words).stdout)
        assert told["points"][0]["measures"]["recall"]["mean"] == 0.5
        assert told["notes"][0].startswith("line 10 of live.jsonl takes no part: ")
        assert (len(told["notes"]), told["notes"][-1]) == (21, "2 more lines of live.jsonl take no part")

    def test_scores_that_contradict_the_ranks_are_told(self, run: Run) -> None:
        """Ranks decide; a tool that goes by scores gives other figures for this file."""
        Path("up.run").write_text(
            "".join(f"c{i} Q0 d{j} {j + 1} {j} t\n" for i in range(40) for j in range(3))
        )
        words = ("sweep", "--run", "up.run", "--qrels", "cases.jsonl", "--k", "1", "--json")
        told = json.loads(run(*words).stdout)
        assert told["points"][0]["measures"]["recall"]["mean"] == 0.5
        assert told["notes"][0].startswith("in 40 of 40 lists of up.run scores do not fall down the ranks")
        assert json.loads(run(*LISTS, "--json").stdout)["notes"] == []

    def test_a_grid_has_a_run_for_each_candidate_depth(self, run: Run) -> None:
        """Each measured by itself, with the recall before the reranker."""
        Path("b.run").write_text(Path("a.run").read_text().replace(" d0 ", " x0 "))
        words = ("--run", "4=a.run", "--run", "8=b.run", "--first-stage", "a.run", "--k", "2,8")
        told = json.loads(run("sweep", "--qrels", "cases.jsonl", *words, "--baseline", "2", "--json").stdout)
        recall = {
            (p["candidate_k"], p["context_k"]): p["measures"]["recall"]["mean"]
            for p in told["points"]
            if p["state"] == "measured"
        }
        assert recall == {(4, 2): 1.0, (8, 2): 0.5, (8, 8): 0.5}
        assert told["measured"]["run"] == {"4": "a.run", "8": "b.run"}
        assert told["comparison"]["against"] == {"candidate_k": 8, "context_k": 2}
        done = run("sweep", "--qrels", "cases.jsonl", "--run", "a.run", "--run", "8=b.run")
        assert (done.exit_code, "got a.run" in done.stderr) == (2, True)


def test_a_baseline_that_is_never_reached_leaves_no_comparison(run: Run) -> None:
    """Paid calls are not lost for it; the note says why."""
    Path("four.py").write_text("def only(query):\n    return [{'id': f'd{i}'} for i in range(4)]\n")
    asked = ("--retriever", "four:only", "--cases", "cases.jsonl", "--k", "1,2,4,8")
    words = (*asked, "--objective", "recall", "--baseline")
    told = json.loads(run("sweep", *words, "8", "--json").stdout)
    assert told["comparison"] is None
    assert told["notes"][-1] == "no comparison with the baseline 8: not reachable, at most 4 returned"
    assert json.loads(run("sweep", *words, "1", "--json").stdout)["comparison"]["against"] == {
        "candidate_k": 4,
        "context_k": 1,
    }
    sys.modules.pop("four")


def test_a_smoke_set_is_small_fixed_and_weighted(run: Run) -> None:
    """About ten of forty, the same each time, standing for all."""
    told = report(run, "--smoke", "10")
    assert 8 <= told["labelled_set"]["cases"] <= 12
    assert told["notes"][0].startswith("a smoke set: ")
    assert report(run, "--smoke", "10")["labelled_set"] == told["labelled_set"]
