"""The words of the docs are those of the code: what one has, the other explains."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.main import get_command

from resweep.domain.event import FEEDBACK_KINDS
from resweep.domain.snapshot import DROP_REASONS, ERROR_CLASSES
from resweep.domain.verdict import COMPONENTS, LAYERS, REASONS, VERDICT_STATES
from resweep.record.watching import CAPTURES
from resweep.serve.cli.app import app
from resweep.store.lockentry import PLAIN, TABLES

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def page(name: str) -> str:
    """Return a page of the docs."""
    return (DOCS / name).read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("definitions.md", (*REASONS, *ERROR_CLASSES, *DROP_REASONS, *FEEDBACK_KINDS)),
        ("concepts.md", (*VERDICT_STATES, *COMPONENTS, *LAYERS)),
        ("operating.md", CAPTURES),
        ("formats.md", (*PLAIN, *TABLES, *FEEDBACK_KINDS)),
    ],
)
def test_a_page_names_every_word_of_the_code(name: str, words: tuple[str, ...]) -> None:
    """A word that is added to the code has to be explained."""
    text = page(name)
    assert [word for word in words if not re.search(rf"\b{word}\b", text)] == []


def test_no_page_shows_a_command_that_is_none() -> None:
    """`resweep X` in backticks in README, docs and runbooks is a command."""
    known = set(get_command(app).commands)  # type: ignore[attr-defined]
    pages = [ROOT / "README.md", *DOCS.glob("*.md"), *(ROOT / "rules" / "runbooks").glob("*.md")]
    for one in pages:
        told = set(re.findall(r"`resweep ([a-z]+)\b", one.read_text("utf-8")))
        assert told - known == set(), one.name


def test_the_index_has_every_page() -> None:
    """A page that nobody links to is not there."""
    index = page("README.md")
    assert [p.name for p in DOCS.glob("*.md") if p.name != "README.md" and f"({p.name})" not in index] == []
