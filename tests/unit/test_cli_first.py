"""`init`, `doctor`, `rules`, `dashboards`, `replay`, `status` and `maintenance` without an agent."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from resweep.serve.cli.app import app

RETRIEVER = """
print("imported")

class Store:
    def __init__(self):
        self.k = 5

    def search(self, query, k=5):
        print("searching")
        return [{"id": f"p{i}", "score": 1 - i / 10, "source": "a.md", "text": "words"} for i in range(k)]

def broken(query):
    raise OSError("index is gone")

number = 5
"""
Run = Callable[..., Result]


@pytest.fixture(name="run")
def _run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in a folder with a retriever in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("RESWEEP_HOME", str(tmp_path / "home"))
    module = f"shop_{tmp_path.name.replace('-', '_')}"
    Path(f"{module}.py").write_text(RETRIEVER)
    return lambda *words: CliRunner().invoke(app, [word.replace("shop:", f"{module}:") for word in words])


def test_init_writes_files_that_check_and_the_agent_read(run: Run) -> None:
    """What the live object shows, and hints for what it does not."""
    done = run("init", "shop:Store", "--pipeline", "bot", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["written"] == ["rag.yaml", "resweep.toml"]
    assert "context_k: 5" in Path("rag.yaml").read_text()
    assert "# reranker:" in Path("rag.yaml").read_text()
    assert run("check", "rag.yaml", "--json").exit_code == 1
    assert "resweep.toml" in run("doctor").stdout


def test_init_never_replaces_a_file_unasked(run: Run) -> None:
    """Neither of the two, and it says so before writing the other."""
    Path("resweep.toml").write_text("mine")
    done = run("init", "shop:Store")
    assert done.exit_code == 2
    assert "resweep.toml would be replaced" in done.stderr
    assert not Path("rag.yaml").exists()
    assert run("init", "shop:Store", "--force").exit_code == 0
    assert Path("resweep.toml").read_text() != "mine"


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("nothing", "expected MODULE:OBJECT"),
        ("no_such_module:x", "cannot import no_such_module"),
        ("shop:Stor", "did you mean Store?"),
        ("shop:number", "expected something that retrieves; got int"),
    ],
)
def test_what_is_no_retriever_is_2_with_a_hint(run: Run, target: str, says: str) -> None:
    """Whatever is wrong with the name."""
    done = run("init", target)
    assert done.exit_code == 2
    assert says in done.stderr


def test_doctor_shows_what_was_extracted(run: Run) -> None:
    """Ids, scores, sources, tokens, direction and cost; what the user's code prints stays off stdout."""
    told = json.loads(run("doctor", "shop:Store", "a question", "--json").stdout)
    assert [hit["id"] for hit in told["hits"]] == ["p0", "p1", "p2", "p3", "p4"]
    found = {line["subject"]: line for line in told["findings"]}
    assert found["direction"]["text"] == "higher is better"
    assert found["source"] == {"state": "ok", "subject": "source", "text": "5 of 5 passages"}
    assert told["added_us"] > 0


def test_doctor_tells_a_retriever_that_raises(run: Run) -> None:
    """Exit 1: something is broken, and it is not the command."""
    done = run("doctor", "shop:broken", "a question")
    assert done.exit_code == 1
    assert "the retriever raised OSError: index is gone" in done.stdout


def test_doctor_without_an_agent_says_what_is_missing(run: Run) -> None:
    """And that nothing is broken."""
    done = run("doctor", "--json")
    assert done.exit_code == 0
    subjects = {line["subject"]: line["state"] for line in json.loads(done.stdout)["findings"]}
    assert subjects["agent"] == "note"
    assert subjects["capture"] == "note"


def test_rules_are_printed_and_written_once(run: Run) -> None:
    """A file that differs is not replaced unasked."""
    assert "groups:" in run("rules").stdout
    written = json.loads(run("rules", "--write", "out", "--json").stdout)["written"]
    assert {"out/invalidation.yaml"} <= set(written)
    assert run("rules", "--write", "out").exit_code == 0
    Path("out/invalidation.yaml").write_text("mine")
    assert run("rules", "--write", "out").exit_code == 2
    assert Path("out/invalidation.yaml").read_text() == "mine"


def test_dashboards_are_json(run: Run) -> None:
    """Printed, one at a time; with --json, all in one document."""
    files = json.loads(run("dashboards", "--json").stdout)["files"]
    assert files
    assert all(json.loads(text)["panels"] for text in files.values())


def test_replay_prints_one_object_and_0_whatever_it_flags(run: Run) -> None:
    """And 2 on input that cannot be used."""
    event = {"type": "event", "pipeline": "p", "asked": 3, "hits": []}
    lines: list[object] = [{"type": "config", "pipeline": "p", "config": {"context_k": 3}}]
    lines += [{**event, "id": f"e{n}", "ts": 1e9 + n} for n in range(50)]
    Path("e.jsonl").write_text("\n".join(map(json.dumps, lines)))
    done = run("replay", "e.jsonl", "--json")
    told = json.loads(done.stdout)
    assert (done.exit_code, told["schema"], told["events"]) == (0, "resweep.replay/1", 50)
    assert "untuned" in [flag["reason"] for flag in told["flags"]]
    assert run("replay", "e.jsonl").exit_code == 0
    Path("bad.jsonl").write_text("nonsense\n")
    assert run("replay", "bad.jsonl").exit_code == 2
    assert run("replay", "none.jsonl").exit_code == 2


def test_status_and_maintenance_work_on_the_store_while_no_agent_runs(run: Run) -> None:
    """The same objects as the agent's."""
    assert json.loads(run("status", "--json").stdout)["pipelines"] == []
    assert json.loads(run("maintenance", "start", "bot", "--for", "2h", "--json").stdout)["now"] == ["bot"]
    assert "no pipeline 'bot' was seen so far" in run("maintenance", "start", "bot").stdout
    listed = run("maintenance", "list").stdout.splitlines()
    assert (listed[-1], len(listed)) == ("under announced work now: bot", 3 + 1)
    assert run("maintenance", "end", "bot").exit_code == 0
    assert run("maintenance", "end", "bot").exit_code == 2
    assert run("maintenance", "start", "bot", "--for", "soon").exit_code == 2
    assert run("flags", "list").stdout == "No flag is open.\n"
    assert "no pipeline 'bto' was seen" in run("flags", "list", "--pipeline", "bto").stdout
    assert run("flags", "ack", "none").exit_code == 2


def test_an_agent_that_was_named_and_does_not_answer_is_an_error(run: Run) -> None:
    """Its store is not ours to look into."""
    done = run("status", "--url", "http://127.0.0.1:9")
    assert done.exit_code == 2
    assert "expected an agent at http://127.0.0.1:9" in done.stderr
    assert run("status", "--url", "ftp://x").exit_code == 2
