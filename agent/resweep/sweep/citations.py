"""Which of the passages an answer was made from it cites, by their places in the prompt."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

MOST_SPAN = 100  # places that one mark such as [1-3] may name
_MARK = re.compile(r"\[\s*(\d{1,4}(?:\s*(?:,|;|-|–)\s*\d{1,4})*)\s*\]")
_PART = re.compile(r"(\d+)(?:\s*[-–]\s*(\d+))?")


def marks(text: str) -> tuple[int, ...]:
    """Return the places that marks in a text name, counted from 1, each once: [2], [1, 3], [1-3]."""
    found = (place for mark in _MARK.finditer(text) for place in _places(mark[1]))
    return tuple(dict.fromkeys(found))


def _places(inside: str) -> Iterator[int]:
    for part in _PART.finditer(inside):
        first, last = int(part[1]), int(part[2] or part[1])
        yield from range(first, min(last, first + MOST_SPAN - 1) + 1)


def cited_places(text: str, told: Sequence[int] | None, passages: int) -> tuple[int, ...]:
    """Return the places, from 1 to `passages`, that an answer cites.

    What the generator `told` is taken as it is, empty too; without it the marks in the text are read. A
    number beyond the passages (a year in brackets) cites none of them.
    """
    places = marks(text) if told is None else told
    return tuple(dict.fromkeys(place for place in places if 1 <= place <= passages))
