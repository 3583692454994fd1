"""The labelled set in the words of others: case lines, CSV, TREC, BEIR, Ragas.

Readers take text and give cases and the rows that cannot be used; writers yield lines. Files are opened by
whoever calls.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from resweep.domain.case import CaseLine


class BadRow(NamedTuple):
    """A row that cannot be used: its number from 1, and why."""

    row: int
    reason: str


@dataclass(slots=True)
class ReadCases:
    """The cases of a file, and the rows that take no part."""

    lines: list[CaseLine] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)
