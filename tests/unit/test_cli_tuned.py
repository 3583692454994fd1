"""`check`, `accept` and `lock`: exact objects and exit codes, with a lock file and without."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from resweep.domain.fingerprint import fingerprint
from resweep.domain.verdict import TunedK
from resweep.serve.cli.app import app
from resweep.store.lockfile import LockFile, read_lock, write_lock

CONFIG: dict[str, Any] = {
    "embedder": {"model": "m1", "api_key": "sk-aaaabbbbccccdddd"},
    "context_k": 8,
    "candidate_k": 50,
}
KNOWN = fingerprint(CONFIG)
Run = Callable[..., Result]


@pytest.fixture(name="run")
def _run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in a folder of its own, with no agent."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RESWEEP_HOME", str(tmp_path / "home"))
    return lambda *words: CliRunner().invoke(app, list(words))


def config_file(config: dict[str, Any] | None = None, name: str = "rag.json") -> Path:
    """Write a config file into the current folder."""
    path = Path(name)
    path.write_text(json.dumps({"pipeline": "bot", "config": CONFIG if config is None else config}))
    return path


def lock_file(**changes: Any) -> Path:
    """Write a lock file with the config's record into the current folder."""
    record = TunedK(
        pipeline="bot",
        basis=KNOWN.basis_hash,
        **{"context_k": 8, "candidate_k": 50, "parts": KNOWN.document, "tuned_at": 1e9, **changes},
    )
    write_lock("resweep.lock", LockFile(entries=(record,)))
    return Path("resweep.lock")


def checked(run: Run, *words: str) -> tuple[int, dict[str, Any]]:
    """Return exit code and object of a check."""
    done = run("check", "rag.json", "--json", *words)
    return done.exit_code, json.loads(done.stdout)


def test_a_tuned_config_is_valid_and_0(run: Run) -> None:
    """The object in full: hashes, state, record, what was left out, nothing changed."""
    config_file()
    lock_file()
    code, told = checked(run)
    assert (code, told["schema"], told["state"]) == (0, "resweep.check/1", "valid")
    assert (told["config_hash"], told["basis_hash"]) == (KNOWN.config_hash, KNOWN.basis_hash)
    assert (told["tuned"]["context_k"], told["omitted"], told["changed"]) == (8, ["embedder.api_key"], [])


def test_another_embedder_is_expired_and_1_and_named(run: Run) -> None:
    """With the path, from what, to what, and what that means."""
    config_file(CONFIG | {"embedder": {"model": "m2"}})
    lock_file()
    code, told = checked(run)
    assert (code, told["state"], told["tuned"]) == (1, "expired", None)
    (change,) = told["changed"]
    assert (change["path"], change["from"], change["to"], change["effect"]) == (
        "embedder.model",
        "m1",
        "m2",
        "invalidates",
    )
    assert "embedder.model changed from m1 to m2" in told["why"]


def test_another_k_is_suspect_and_1(run: Run) -> None:
    """The record is found, and the depth it was tuned to is not the one in use."""
    config_file(CONFIG | {"context_k": 12})
    lock_file()
    code, told = checked(run)
    assert (code, told["state"], told["tuned"]["context_k"]) == (1, "suspect", 8)
    assert [change["path"] for change in told["changed"]] == ["context_k"]


def test_a_record_past_its_date_is_expired(run: Run) -> None:
    """Accepted until then, and not longer."""
    config_file()
    lock_file(valid_until=1.1e9)
    assert checked(run)[0] == 1
    assert checked(run)[1]["state"] == "expired"


def test_without_lock_file_or_entry_it_is_untuned_and_1(run: Run) -> None:
    """Nobody tuned this pipeline."""
    config_file()
    assert (checked(run)[0], checked(run)[1]["state"]) == (1, "untuned")
    lock_file()
    Path("rag.json").write_text(json.dumps({"pipeline": "other", "config": CONFIG}))
    assert (checked(run)[0], checked(run)[1]["state"]) == (1, "untuned")


def test_yaml_toml_and_json_are_one_config(run: Run) -> None:
    """The same hash, whatever it is written in."""
    lock_file()
    Path("rag.yaml").write_text(
        "pipeline: bot\nconfig:\n  embedder: {model: m1}\n  context_k: 8\n  candidate_k: 50\n"
    )
    Path("rag.toml").write_text(
        'pipeline = "bot"\n[config]\ncontext_k = 8\ncandidate_k = 50\n[config.embedder]\nmodel = "m1"\n'
    )
    assert run("check", "rag.yaml").exit_code == 0
    assert run("check", "rag.toml").exit_code == 0


def test_a_lock_file_further_up_is_found(run: Run, tmp_path: Path) -> None:
    """From the config's folder, too."""
    lock_file()
    (tmp_path / "a" / "b").mkdir(parents=True)
    config_file(name="a/b/rag.json")
    assert run("check", "a/b/rag.json").exit_code == 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[", "YAML was expected"),
        ("- 1\n", "expected a mapping"),
        ("config: {}\n", "expected `pipeline`"),
        ("pipeline: bot\n", "expected `config`"),
        ("pipeline: bot\nconfig: {a: .nan}\n", "a"),
    ],
)
def test_an_unusable_config_is_2_with_its_place(run: Run, text: str, says: str) -> None:
    """Never 1."""
    Path("rag.yaml").write_text(text)
    done = run("check", "rag.yaml")
    assert done.exit_code == 2
    assert says in done.stderr


def test_an_unusable_lock_file_is_2(run: Run) -> None:
    """Broken, missing where it was named, or of a newer format."""
    config_file()
    Path("resweep.lock").write_text("format = \n")
    assert run("check", "rag.json").exit_code == 2
    Path("resweep.lock").write_text('format = "resweep.lock/9"\n')
    assert run("check", "rag.json").exit_code == 2
    assert run("check", "rag.json", "--lock", "none.lock").exit_code == 2


@pytest.mark.parametrize("depth", ["eight", 0, True, 2.5])
def test_a_depth_that_is_none_is_2(run: Run, depth: object) -> None:
    """Before it says that all is well."""
    lock_file()
    config_file({**CONFIG, "context_k": depth})
    done = run("check", "rag.json")
    assert done.exit_code == 2
    assert f"expected `config.context_k`, a whole number from 1 on; got {depth!r}" in done.stderr


def test_a_config_that_states_no_depth_is_valid_with_that_said(run: Run) -> None:
    """Its basis is tuned; the depth it runs with is known to nobody here."""
    lock_file()
    config_file({"embedder": CONFIG["embedder"], "candidate_k": 50})
    code, told = checked(run)
    assert (code, told["state"]) == (0, "valid")
    assert told["why"].endswith("declares no context_k, so whether it runs at that depth is not known")


def test_what_was_added_or_removed_is_told_as_absent_before_or_after(run: Run) -> None:
    """In words that are nobody's value."""
    lock_file()
    config_file({**CONFIG, "reranker": {"model": "r1"}})
    assert "reranker: (absent) -> {'model': 'r1'}" in run("check", "rag.json").stdout


def test_accept_makes_a_checked_config_valid(run: Run) -> None:
    """Recorded in the store and in the lock file; who and why are kept."""
    config_file()
    done = run("accept", "bot", "--config", "rag.json", "--lock", "resweep.lock", "--because", "tried it")
    assert done.exit_code == 0, done.stderr
    (entry,) = read_lock("resweep.lock").entries
    assert (entry.context_k, entry.candidate_k, entry.because) == (8, 50, "tried it")
    assert run("check", "rag.json").exit_code == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--k", "0"], "expected 1 to 10000; got 0"),
        (["--until", "2001-01-01"], "a moment to come"),
        (["--until", "soon"], "expected a date"),
        (["--candidate-k", "-1"], "expected 1 to 10000"),
    ],
)
def test_what_cannot_be_accepted_is_2(run: Run, words: list[str], says: str) -> None:
    """And nothing is recorded."""
    config_file()
    done = run("accept", "bot", "--config", "rag.json", *words)
    assert done.exit_code == 2
    assert says in done.stderr
    assert json.loads(run("lock", "pull", "--json").stdout)["changed"] == []


def test_a_pipeline_nobody_saw_cannot_be_accepted(run: Run) -> None:
    """The nearest name is offered."""
    config_file()
    run("accept", "bot", "--config", "rag.json")
    done = run("accept", "bott")
    assert done.exit_code == 2
    assert "no pipeline 'bott' was seen" in done.stderr


def test_a_lock_file_that_cannot_be_read_stops_an_acceptance(run: Run) -> None:
    """Before anything is recorded: the two must not drift apart."""
    config_file()
    Path("resweep.lock").write_text("<<<<<<< ours\n")
    assert run("accept", "bot", "--config", "rag.json").exit_code == 2
    Path("resweep.lock").unlink()
    assert json.loads(run("lock", "pull", "--json").stdout)["changed"] == []


def test_push_and_pull_carry_records_both_ways(run: Run) -> None:
    """What was reviewed holds in the store; what the store has comes into a new file."""
    lock_file(because="reviewed")
    pushed = json.loads(run("lock", "push", "--json").stdout)
    assert [record["because"] for record in pushed["changed"]] == ["reviewed"]
    assert json.loads(run("lock", "push", "--json").stdout)["changed"] == []
    Path("resweep.lock").unlink()
    assert run("lock", "pull").exit_code == 0
    assert read_lock("resweep.lock").entries[0].because == "reviewed"


def test_a_push_that_overrules_the_store_says_so(run: Run) -> None:
    """Both values, by name."""
    lock_file()
    run("lock", "push")
    lock_file(context_k=5)
    told = json.loads(run("lock", "push", "--json").stdout)
    assert "context_k is 5 in the lock file and 8 in the store" in told["overruled"][0]
