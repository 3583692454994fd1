"""Bring an exception to one class of a fixed list, since its own text may say anything about anybody."""

from __future__ import annotations

import re
from typing import NamedTuple

# In this order: the first that fits names the class.
_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("timeout", re.compile(r"time[d ]*[ _-]?out|deadline", re.I)),
    (
        "rate_limit",
        re.compile(r"rate.?limit|too many requests|\b429\b|quota|throttl|resource.?exhausted", re.I),
    ),
    ("auth", re.compile(r"unauthori[sz]ed|forbidden|authenticat|permission|api.?key|\b40[13]\b", re.I)),
    (
        "connection",
        re.compile(r"connect|network|socket|dns|unreachable|unavailable|\b50[234]\b|broken.?pipe", re.I),
    ),
)
_VALUE = re.compile(
    r"^(Value|Type|Key|Index|Attribute|Lookup|Arithmetic|ZeroDivision|Unicode\w*|Validation)\w*Error$"
)
_DIMENSION = re.compile(r"dimension|vector (size|length)|\bdims?\b|\bshapes?\b", re.I)
_NUMBER = re.compile(r"\b\d{1,6}\b")
_EXPECTED_FIRST = re.compile(r"expect\w*\D{0,40}(\d+)\D+(\d+)|should (?:be|have)\D{0,40}(\d+)\D+(\d+)", re.I)


class Fault(NamedTuple):
    """The class of an error, and of a dimension mismatch the vector sizes (got, expected)."""

    name: str
    got: int | None = None
    expected: int | None = None


def classify(error_class: str, message: str | None) -> Fault:
    """Return the fixed class of an error from its class name and its text (which is not kept).

    The classes are those of `snapshot.ERROR_CLASSES`. A dimension mismatch needs the word and two
    different numbers: "dimension 768 does not match collection dimensionality 384".
    """
    text = (message or "")[:2000]
    sizes = _sizes(text)
    if sizes is not None:
        return Fault("dimension_mismatch", *sizes)
    for name, pattern in _PATTERNS:
        if pattern.search(error_class):
            return Fault(name)
    for name, pattern in _PATTERNS:
        if pattern.search(text):
            return Fault(name)
    return Fault("value" if _VALUE.match(error_class) else "other")


def _sizes(text: str) -> tuple[int, int] | None:
    """Return (got, expected) vector sizes where the text speaks of two different ones."""
    if not _DIMENSION.search(text):
        return None
    swapped = _EXPECTED_FIRST.search(text)
    if swapped:
        expected, got = (int(g) for g in swapped.groups() if g is not None)
        return (got, expected) if got != expected else None
    numbers = [int(n) for n in _NUMBER.findall(text)]
    pair = list(dict.fromkeys(numbers))[:2]
    return (pair[0], pair[1]) if len(pair) == 2 else None
