"""Every command says what it does, shows an example and its exit codes, here and in the documentation."""

from __future__ import annotations

from pathlib import Path

import pytest

from resweep.serve.cli.page import commands, render_markdown

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "commands.md").read_text("utf-8")


ALL = dict(commands())


@pytest.mark.parametrize("name", ALL)
def test_a_command_describes_itself(name: str) -> None:
    """What it does, an example that calls it, its exit codes, and `--json`."""
    command = ALL[name]
    assert command.help
    assert f"Example: {name}" in command.epilog
    assert "Exit codes: 0 " in command.epilog
    assert "--json" in [option for p in command.params for option in p.opts]
    assert all(p.help for p in command.params if p.name != "help")


@pytest.mark.parametrize("name", ALL)
def test_a_command_is_documented_word_for_word(name: str) -> None:
    """With its options and its exit codes."""
    section = PAGE.split(f"\n## {name}")[1].split("\n## ")[0]
    command = ALL[name]
    assert command.help in section
    assert command.epilog.split("\n\n")[1] in section
    for parameter in command.params:
        if parameter.param_type_name == "option" and parameter.name != "help":
            assert f"`{parameter.opts[0]}" in section
            assert parameter.help in section


def test_the_page_is_the_one_that_the_commands_make() -> None:
    """`python -m resweep.serve.cli.page > docs/commands.md` brings it up to date."""
    assert render_markdown() == PAGE


def test_nothing_is_documented_that_is_not_there() -> None:
    """A command that went must go from the page too."""
    told = [line.removeprefix("## ") for line in PAGE.splitlines() if line.startswith("## resweep")]
    assert {" ".join(word for word in one.split() if word.islower()) for one in told} == set(ALL)


def test_the_pages_of_the_api_name_every_route() -> None:
    """docs/api.md and the application, side by side."""
    from resweep.serve.http import ROUTES

    page = (ROOT / "docs" / "api.md").read_text("utf-8")
    for path in ROUTES:
        named = path.replace("{key:path}/{action:str}", "KEY/ack").replace(
            "{id:str}/{action:str}", "ID/judge"
        )
        assert named.replace("{id:str}", "ID") in page
