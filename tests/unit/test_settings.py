"""Settings: file, then environment, then flags; what cannot be meant is refused with a hint."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from resweep import settings
from resweep.detect.settings import DetectSettings
from resweep.domain.errors import UsageError
from resweep.record.options import _FROM_OUTSIDE, Options
from resweep.serve.settings_page import render_markdown
from resweep.serve.settings_sources import as_environment, load
from resweep.settings import Known

DOCS = Path(__file__).parents[2] / "docs" / "configuration.md"


def toml(folder: Path, text: str) -> Path:
    """Write a settings file and return its path."""
    path = folder / "resweep.toml"
    path.write_text(text)
    return path


def test_without_anything_the_defaults_hold(tmp_path: Path) -> None:
    """No file, no variable, no flag."""
    loaded = load(environ={}, folder=tmp_path)
    assert loaded.settings.agent.listen == "127.0.0.1:9464"
    assert (loaded.origins, loaded.file) == ({}, None)


def test_the_environment_is_stronger_than_the_file_and_a_flag_than_both(tmp_path: Path) -> None:
    """And each setting says where it came from."""
    toml(tmp_path, '[agent]\nlisten = "a:1"\nstore = "s.db"\n[otlp]\nendpoint = "http://f"\ninterval_s = 9\n')
    loaded = load(
        environ={"RESWEEP_STORE": "e.db", "RESWEEP_OTLP_ENDPOINT": "http://e", "HOME": "/"},
        flags={"agent.listen": "b:2", "otlp.endpoint": "http://x", "agent.store": None},
        folder=tmp_path,
    )
    made = loaded.settings
    assert (made.agent.listen, made.agent.store, made.otlp.endpoint) == ("b:2", "e.db", "http://x")
    assert loaded.origins == {
        "agent.listen": "flag",
        "agent.store": "RESWEEP_STORE",
        "otlp.endpoint": "flag",
        "otlp.interval_s": str(tmp_path / "resweep.toml"),
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[agent]\nlisten_on = 'x'\n", "did you mean agent.listen?"),
        ("[agnet]\nlisten = 'x'\n", r"did you mean \[agent\]\?"),
        ("listen = 'x'\n", "no setting"),
        ("[agent]\nstandby = 'perhaps'\n", "expected true or false; got 'perhaps'"),
        ("[metrics]\nconfigs = 21\n", "expected at least 1 and at most 20; got 21"),
        ("[metrics]\nconfigs = 2.5\n", "expected a whole number; got 2.5"),
        ("[otlp]\ninterval_s = nan\n", "expected a number; got nan"),
        ("[agent]\ntoken = 5\n", "expected text; got a value"),
        ("[agent]\nlog_format = 'xml'\n", "expected 'plain' or 'json'; got 'xml'"),
        ("[severities]\nk_mismatched = 'page'\n", "did you mean severities.k_mismatch?"),
        ("[severities]\nk_mismatch = 'loud'\n", "expected 'notice' or 'warning' or 'page'"),
        ("[agent\n", "expected TOML"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place(text: str, says: str, tmp_path: Path) -> None:
    """Unknown names get the nearest known one."""
    toml(tmp_path, text)
    with pytest.raises(UsageError, match=says):
        load(environ={}, folder=tmp_path)


def test_a_slip_in_a_variable_is_refused(tmp_path: Path) -> None:
    """It would be ignored in silence otherwise."""
    with pytest.raises(UsageError, match=r"RESWEEP_LISTN; did you mean RESWEEP_LISTEN\?"):
        load(environ={"RESWEEP_LISTN": "x"}, folder=tmp_path)


def test_variables_of_others_are_left_alone(tmp_path: Path) -> None:
    """Kubernetes puts some beside every Service called resweep; tests have their own."""
    others = {
        "RESWEEP_PORT": "tcp://10.0.0.1:80",
        "RESWEEP_SERVICE_HOST": "10.0.0.1",
        "RESWEEP_PORT_9464_TCP": "tcp://10.0.0.1:9464",
        "RESWEEP_SERVICE_PORT": "80",
        "RESWEEP_REQUIRE": "all",
        "RESWEEP_CONFIG": "9f2c0a417be1",  # as our webhook sets it in a pipeline that it starts
        "RESWEEP_EVENT": "opened",
    }
    assert load(environ=others, folder=tmp_path).origins == {}


def test_paths_in_the_file_are_beside_the_file(tmp_path: Path) -> None:
    """Wherever the agent is started."""
    path = toml(tmp_path, '[agent]\nhome = "state"\nspool_dir = "/abs"\n')
    made = load(path, environ={}, folder=Path("/")).settings.agent
    assert (made.home, made.spool_dir) == (str(tmp_path / "state"), "/abs")


def test_a_named_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """One that was not named need not be there."""
    with pytest.raises(UsageError, match="No such file"):
        load(environ={"RESWEEP_SETTINGS": str(tmp_path / "none.toml")})


def test_text_from_the_environment_becomes_what_the_setting_is(tmp_path: Path) -> None:
    """Numbers, switches, and nothing for an empty variable."""
    made = load(
        environ={
            "RESWEEP_STANDBY": "yes",
            "RESWEEP_LIMITS_BODY_BYTES": "4096",
            "RESWEEP_OTLP_INTERVAL_S": "2.5",
            "RESWEEP_OTLP_ENDPOINT": "",
        },
        folder=tmp_path,
    ).settings
    assert (made.agent.standby, made.limits.body_bytes) == (True, 4096)
    assert (made.otlp.interval_s, made.otlp.endpoint) == (2.5, None)


def test_severities_are_read(tmp_path: Path) -> None:
    """By reason."""
    toml(tmp_path, '[severities]\nuntuned = "warning"\n')
    assert load(environ={}, folder=tmp_path).settings.severities == {"untuned": "warning"}


def test_the_detect_section_is_what_the_layers_take() -> None:
    """Same names, same defaults."""
    layers = {f.name: f.default for f in fields(DetectSettings) if f.name != "severities"}
    section = {one.name: one.default for one in settings.known() if one.section == "detect"}
    assert section == layers


def test_the_record_section_is_what_recorders_read() -> None:
    """Same names, same defaults; besides it they heed the agent's rules file."""
    outside = {f.name: f.default for f in fields(Options) if f.name in _FROM_OUTSIDE}
    assert outside.pop("rules_file") is None
    section = {one.name: one.default for one in settings.known() if one.section == "record"}
    assert section == outside


@pytest.mark.parametrize("one", list(settings.known()), ids=lambda one: one.key)
def test_every_setting_is_documented(one: Known) -> None:
    """With its variable and what it does, word for word."""
    text = DOCS.read_text("utf-8")
    assert f"`{one.variable}`" in text
    assert one.doc in text


def test_the_page_is_the_one_that_the_settings_make() -> None:
    """`python -m resweep.serve.settings_page > docs/configuration.md` brings it up to date."""
    assert DOCS.read_text("utf-8") == render_markdown()


def test_the_documented_example_is_read(tmp_path: Path) -> None:
    """The last block of the page is a settings file."""
    toml(tmp_path, DOCS.read_text("utf-8").split("```toml\n")[-1].split("```")[0])
    assert load(environ={}, folder=tmp_path).settings.otlp.interval_s == 30


def test_settings_given_to_another_process_are_the_same_there(tmp_path: Path) -> None:
    """As variables, defaults left out."""
    toml(
        tmp_path,
        '[sweep]\nby_itself = true\nmax_calls = 5\n[detect]\nholidays = ["2026-12-25", "2027-01-01"]\n',
    )
    made = load(environ={}, folder=tmp_path).settings
    given = as_environment(made)
    assert given == {
        "RESWEEP_SWEEP_BY_ITSELF": "True",
        "RESWEEP_SWEEP_MAX_CALLS": "5",
        "RESWEEP_DETECT_HOLIDAYS": "2026-12-25,2027-01-01",
    }
    assert load(environ=given, folder=tmp_path / "elsewhere").settings == made
