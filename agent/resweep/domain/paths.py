"""Paths into a config, and the patterns that match them.

A path is a tuple of keys (text) and list positions (numbers); written `stages[0].timeout`. A pattern is
dotted: `*` and `?` stand for characters within one step, `**` for any number of steps, none included. Steps
are compared in snake case, so `maxRetries`, `max-retries` and `max_retries` are one; a list position is one
step that only `*` and `**` match.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TypeAlias

Path: TypeAlias = "tuple[str | int, ...]"

ANYWHERE = -1  # the position of a member of a set, which has none

_PLAIN_KEY = re.compile(r"[^\s.\[\]\"']+")
_STEP = re.compile(r"\.?(?:\[(-?\d+|\*)\]|\[(\"(?:[^\"\\]|\\.)*\")\]|([^.\[\]]+))")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[-\s]+")
_SEPARATOR = "\x1f"
_POSITION = "#"


def text(path: Path) -> str:
    """Return a path as a person writes it: `a.b[0]`, with odd keys as `a["x.y"]`."""
    return "".join(map(_step_text, path)).removeprefix(".")


def _step_text(step: str | int) -> str:
    if isinstance(step, int):
        return "[*]" if step == ANYWHERE else f"[{step}]"
    return f".{step}" if _PLAIN_KEY.fullmatch(step) else f"[{json.dumps(step, ensure_ascii=False)}]"


def parse(written: str) -> Path:
    """Return the path a person wrote; what `text` gave comes back the same."""
    return tuple(map(_parsed_step, _STEP.finditer(written)))


def _parsed_step(step: re.Match[str]) -> str | int:
    position, quoted, plain = step.groups()
    if position is not None:
        return ANYWHERE if position == "*" else int(position)
    return plain if plain is not None else str(json.loads(quoted))


@lru_cache(maxsize=8192)
def snake(key: str) -> str:
    """Return a key in snake case: `chunkSize`, `chunk-size` and `CHUNK_SIZE` become `chunk_size`."""
    return _HUMP.sub("_", key.strip()).lower()


def steps(path: Path) -> tuple[str, ...]:
    """Return a path as patterns see it: keys in snake case, list positions alike."""
    return tuple(snake(step) if isinstance(step, str) else _POSITION for step in path)


def subject(seen: Iterable[str]) -> str:
    """Return the text that compiled patterns run on."""
    return "".join(_SEPARATOR + step for step in seen)


def expression(pattern: str) -> str:
    """Return a pattern as a regular expression over a `subject`. Raises `ValueError` for an empty step."""
    return "".join(map(_step_expression, pattern.split(".")))


def _step_expression(step: str) -> str:
    if not step:
        raise ValueError("a pattern has a step between any two dots")
    if step == "**":
        return f"(?:{_SEPARATOR}[^{_SEPARATOR}]*)*"
    wild = {"*": f"[^{_SEPARATOR}]*", "?": f"[^{_SEPARATOR}]"}
    return _SEPARATOR + "".join(wild.get(sign) or re.escape(sign) for sign in snake(step))


class Patterns:
    """Several patterns, tried in order. `first` gives the place of the first that matches a subject."""

    __slots__ = ("_all",)

    def __init__(self, patterns: Iterable[str]) -> None:
        joined = "|".join(f"({expression(pattern)})" for pattern in patterns)
        self._all = re.compile(f"(?:{joined})\\Z") if joined else None

    def first(self, seen: str) -> int | None:
        """Return the place, from 0, of the first pattern that matches all of a subject, or None."""
        found = self._all.match(seen) if self._all else None
        return None if found is None else (found.lastindex or 1) - 1

    def __contains__(self, path: Path) -> bool:
        return self.first(subject(steps(path))) is not None

    def __bool__(self) -> bool:
        return self._all is not None
