"""Arguments beat configure, that the environment, that resweep.toml, that the defaults."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import resweep
from resweep.record.adapters.base import Facts
from resweep.record.identity import config_of, rules_of
from resweep.record.options import options, reset, salt_of


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    yield
    reset()


def test_the_stronger_wins(tmp_path: Path) -> None:
    """Each layer covers the one below."""
    (tmp_path / "resweep.toml").write_text('[record]\nsink = "spool:/a"\ncapture = "text"\nflush_s = 3.0\n')
    (tmp_path / "deep").mkdir()
    environ = {"RESWEEP_SINK": "none", "RESWEEP_CAPTURE": "sampled"}
    resweep.configure(capture="none")
    found = options(environ, tmp_path / "deep")
    assert (found.sink, found.capture, found.flush_s) == ("none", "none", 3.0)


def test_what_cannot_be_meant_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A service starts with the default and a warning."""
    found = options({"RESWEEP_SAMPLE_RATE": "often", "RESWEEP_CAPTURE": "all"}, tmp_path)
    assert (found.sample_rate, found.capture) == (0.05, "none")
    assert len(caplog.records) == 2


def test_a_broken_file_stops_nothing(tmp_path: Path) -> None:
    """The defaults hold."""
    (tmp_path / "resweep.toml").write_text("[record\n")
    assert options({}, tmp_path).sink is None


def test_configure_takes_known_names_alone() -> None:
    """A slip of the pen is told at once."""
    with pytest.raises(TypeError, match="no argument 'sinc'"):
        resweep.configure(sinc="none")


def test_the_salt_is_kept_beside_the_spool(tmp_path: Path) -> None:
    """All processes of one home veil alike; the file is private."""
    environ = {"RESWEEP_HOME": str(tmp_path)}
    assert salt_of(None, environ) == salt_of(None, environ)
    assert (tmp_path / "salt").stat().st_mode & 0o777 == 0o600
    assert salt_of("mine", environ) == b"mine"


def test_a_users_own_rules_hold_for_recorders_too(tmp_path: Path) -> None:
    """What `check` calls inert is inert in a service: the hash does not change with it."""
    (tmp_path / "mine.yaml").write_text(
        "schema: resweep.invalidation/1\nrules:\n  - {path: colour, effect: inert, because: ours}\n"
    )
    (tmp_path / "resweep.toml").write_text('[agent]\nrules_file = "mine.yaml"\n')
    found = options({}, tmp_path).rules_file
    assert found == str(tmp_path / "mine.yaml")
    one, other = (
        config_of(None, "p", {"colour": c, "context_k": 3}, Facts(), rules_of(found)).config for c in "ab"
    )
    assert one == other


def test_recorders_of_one_agent_share_a_salt_by_its_token() -> None:
    """Replicas in different containers know the same question again."""
    assert salt_of(None, {}, secret="token-of-the-agent") == salt_of(None, {}, secret="token-of-the-agent")
    assert salt_of(None, {}, secret="one") != salt_of(None, {}, secret="two")
