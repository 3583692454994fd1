"""The page about the sweep says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from resweep.domain.measures import DEFINITIONS
from resweep.sweep.constraints import QUANTITIES
from resweep.sweep.report import Report
from resweep.sweep.rules import RULES

PAGE = (Path(__file__).parents[3] / "docs" / "sweep.md").read_text(encoding="utf-8")


def test_every_measure_is_defined_as_in_the_code() -> None:
    """The table on the page is the table in the code, word for word."""
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", PAGE, re.MULTILINE))
    assert {name: rows.get(name) for name in DEFINITIONS} == dict(DEFINITIONS)


def test_every_key_of_the_report_is_described() -> None:
    """No key without a word about it."""
    assert [name for name in Report.__dataclass_fields__ if f"`{name}`" not in PAGE] == []


def test_every_rule_and_quantity_is_named() -> None:
    """What may be written is on the page."""
    assert [name for name in RULES if f"{name}(" not in PAGE] == []
    assert [name for name in QUANTITIES if f"`{name}`" not in PAGE] == []
