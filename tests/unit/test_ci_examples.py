"""The examples for CI call commands and options that exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from resweep.serve.cli.page import commands

FOLDER = Path(__file__).parents[2] / "examples" / "ci"
FILES = sorted(FOLDER.glob("*.yml"))
KNOWN = dict(commands())


def scripts(value: object) -> Iterator[str]:
    """Yield every text of a YAML document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from scripts(inner)


def calls(path: Path) -> Iterator[list[str]]:
    """Yield the words of every call of resweep."""
    for text in scripts(yaml.safe_load(path.read_text("utf-8"))):
        for line in text.replace("\\\n", " ").splitlines():
            for found in re.finditer(r"(?:^|[;&|(]\s*)resweep (.*?)(?:\)|\|\||&&|$)", line.strip()):
                yield shlex.split(found[1])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_call_is_one_that_exists(path: Path) -> None:
    """Its command and each of its options."""
    found = list(calls(path))
    assert {words[0] for words in found} == {"check", "sweep", "compare"}
    for words in found:
        options = {name for p in KNOWN[f"resweep {words[0]}"].params for name in p.opts}
        assert [word for word in words if word.startswith("--") and word not in options] == []


def test_both_forges_are_shown() -> None:
    """GitHub and GitLab."""
    assert [path.name for path in FILES] == ["github.yml", "gitlab.yml"]
