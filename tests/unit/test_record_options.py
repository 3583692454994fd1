"""Arguments beat configure, that the environment, that resweep.toml, that the defaults."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import resweep
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
