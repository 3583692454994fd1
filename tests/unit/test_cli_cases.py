"""`resweep cases` and `resweep replay --cases`, on a store of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from resweep.serve.cli.app import app

CSV = "question,answer,link\nHow do refunds work?,In 30 days,https://help/refunds\n,nobody,x\n"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give every test a home of its own."""
    monkeypatch.setenv("RESWEEP_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str, code: int = 0) -> Any:
    """Run a command with --json and return what it prints."""
    done = CliRunner().invoke(app, [*words, "--json"])
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


def test_a_csv_goes_in_and_every_bad_row_is_told(home: Path) -> None:
    """Exit 1 says that some rows were left out; the others are there."""
    (home / "faq.csv").write_text(CSV)
    told = run("cases", "import", "faq.csv", "--pipeline", "bot", code=1)
    assert (told["new"], [b["row"] for b in told["bad"]]) == (1, [3])
    listed = run("cases", "list", "--pipeline", "bot")
    assert [c["query"] for c in listed["cases"]] == ["How do refunds work?"]
    assert listed["progress"][0]["waiting"] == 1


def test_cases_that_name_no_pipeline_are_filed_under_the_only_one_or_refused(home: Path) -> None:
    """Never silently somewhere: the note says where, and several pipelines are a question to the person."""
    (home / "faq.csv").write_text("question,answer,link\nHow do refunds work?,In 30 days,https://a/b\n")
    assert "filed under 'unknown'" in run("cases", "import", "faq.csv")["notes"][0]
    assert run("cases", "import", "faq.csv", "--pipeline", "bot")["notes"] == []


def beir(folder: Path) -> Path:
    """Write a small BEIR folder."""
    (folder / "qrels").mkdir(parents=True)
    rows = [{"_id": f"q{i}", "text": f"question number {i} about billing"} for i in range(4)]
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "corpus.jsonl").write_text(json.dumps({"_id": "d1", "title": "T", "text": "alpha"}))
    table = "query-id\tcorpus-id\tscore\n" + "".join(f"q{i}\td1\t{i + 1}\n" for i in range(3)) + "q9\td1\t1\n"
    (folder / "qrels" / "test.tsv").write_text(table)
    return folder


def test_a_beir_folder_goes_in_and_out_again(home: Path) -> None:
    """Ids, grades and texts; a judged query that is nowhere is told."""
    told = run("cases", "import", str(beir(home / "in")), "--pipeline", "bot", code=1)
    assert told["new"] == 3
    assert "'q9' is judged, and not in queries.jsonl" in told["bad"][0]["reason"]
    assert run("cases", "export", "out")["cases"] == 3
    table = (home / "out" / "qrels" / "test.tsv").read_text().splitlines()
    assert sorted(table[1:]) == ["q0\td1\t1", "q1\td1\t2", "q2\td1\t3"]
    again = run("cases", "import", "out", "--pipeline", "other")
    assert again["new"] == 3


@pytest.mark.parametrize("name", ["set.jsonl", "set.jsonl.gz", "set.csv"])
def test_what_goes_out_comes_in_again(home: Path, name: str) -> None:
    """Into another store: the same cases, judgments and splits."""
    run("cases", "import", str(beir(home / "in")), "--pipeline", "bot", code=1)
    run("cases", "export", name)
    run("cases", "import", name, "--pipeline", "copy")
    run("cases", "export", "a.jsonl", "--pipeline", "bot")
    run("cases", "export", "b.jsonl", "--pipeline", "copy")
    kept = ("query", "judgments", "split", "state", "cluster", "seen")
    one, two = (
        [[json.loads(line)[k] for k in kept] for line in (home / f).read_text().splitlines()]
        for f in ("a.jsonl", "b.jsonl")
    )
    assert sorted(map(str, one)) == sorted(map(str, two))


def test_trec_files_are_written_side_by_side(home: Path) -> None:
    """Judgments and what was retrieved."""
    run("cases", "import", str(beir(home / "in")), "--pipeline", "bot", code=1)
    assert run("cases", "export", "set.qrels")["written"] == ["set.qrels", "set.run"]
    assert sorted((home / "set.qrels").read_text().splitlines())[0] == "q0 0 d1 1"


def test_synthetic_questions_are_told_apart(home: Path) -> None:
    """Written from the passages, they are easier than what people ask."""
    run("cases", "import", str(beir(home / "in")), "--pipeline", "bot", "--synthetic", code=1)
    assert {c["origin"] for c in run("cases", "list")["cases"]} == {"synthetic"}


def test_an_unknown_format_is_refused(home: Path) -> None:
    """With those there are."""
    (home / "x.txt").write_text("hi")
    told = run("cases", "import", "x.txt", "--format", "excel", code=2)
    assert "expected a format in jsonl, csv, trec, beir, ragas" in told["error"]


def stream(path: Path, n: int) -> None:
    """Write a recording of n events over two days, some empty, and a bad word."""
    lines: list[dict[str, Any]] = [
        {"type": "config", "pipeline": "bot", "config": {"embedder": {"model": "m1"}, "context_k": 3}}
    ]
    for i in range(n):
        hits = [] if i % 15 == 4 else [{"id": f"p{j}", "score": 0.9 - j / 10} for j in range(3)]
        ts = 1_796_000_000 + i * 172_800 // n
        event = {"type": "event", "id": f"e{i}", "ts": ts, "pipeline": "bot", "asked": 3, "hits": hits}
        lines.append({**event, "query": f"what is topic {i}"})
    lines.append({"type": "feedback", "id": "f", "event_id": "e7", "kind": "negative", "ts": ts})
    path.write_text("\n".join(map(json.dumps, lines)))


def test_a_replay_writes_the_cases_of_its_stream(home: Path) -> None:
    """Each with event, stratum, probability and weight; the weights add up to the stream."""
    stream(home / "s.jsonl", 3000)
    assert run("replay", "s.jsonl", "--cases", "c.jsonl")["events"] == 3000
    cases = [json.loads(line) for line in (home / "c.jsonl").read_text().splitlines()]
    assert 20 < len(cases) < 180
    assert all(c["event_id"] and 0 < c["inclusion_probability"] <= 1 and c["plan"] for c in cases)
    assert all(c["weight"] == pytest.approx(1 / c["inclusion_probability"]) for c in cases)
    assert {"uniform", "empty_or_short", "feedback"} <= {c["stratum"] for c in cases}
    error = sum((1 - c["inclusion_probability"]) / c["inclusion_probability"] ** 2 for c in cases) ** 0.5
    assert abs(sum(c["weight"] for c in cases) - 3000) < 3 * error


def test_another_seed_draws_other_cases(home: Path) -> None:
    """Equal seeds draw equal ones."""
    stream(home / "s.jsonl", 900)
    for seed, name in (("a", "1"), ("a", "2"), ("b", "3")):
        run("replay", "s.jsonl", "--cases", name, "--seed", seed)
    one, two, three = ((home / name).read_text() for name in "123")
    assert one == two != three
