"""Values from outside made fit to keep: finite numbers, valid UTF-8, bounded lengths. Nothing here raises."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from hashlib import blake2b
from uuid import UUID

from resweep.domain.event import ScoreState

ID_LONGEST = 256
LABEL_LONGEST = 64
SCORE_LARGEST = 1e9  # beyond it a sum of scores would not fit the counters of a database
_HALF_PAIR = re.compile("[\ud800-\udfff]")


def clean(text: str, longest: int | None = None) -> str:
    """Return text as valid UTF-8; beyond `longest` characters it is cut and a hash of the whole added."""
    if not text.isascii():
        text = _HALF_PAIR.sub("\ufffd", text)
    if longest is None or len(text) <= longest:
        return text
    return f"{text[:longest]}-{blake2b(text.encode(), digest_size=4).hexdigest()}"


@lru_cache(maxsize=1024)
def label(value: object) -> str:
    """Return a name fit for a label: None and "" are "unknown"; the longest are cut and end in a hash."""
    text = clean(as_text(value))
    return (text if len(text) <= LABEL_LONGEST else clean(text, LABEL_LONGEST - 9)) or "unknown"


def as_text(value: object) -> str:
    """Return a text or bytes as text, "" for None; another object only where its text form is harmless."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("utf-8", "replace")
    if isinstance(value, int | float | UUID):
        return str(value)
    return ""


def identity(value: object) -> str | None:
    """Return a passage id as text, None where it is none."""
    if type(value) is str:
        text = value
    elif isinstance(value, bool) or value is None:
        return None
    elif isinstance(value, bytes):
        text = value.hex()
    else:
        text = _plain(value)
    if not text:
        return None
    return text if len(text) <= ID_LONGEST and text.isascii() else clean(text, ID_LONGEST)


def _plain(value: object) -> str:
    """Text of what names things: str, int, UUID, a path, a numpy integer."""
    if isinstance(value, str | int | UUID) or hasattr(value, "__fspath__"):
        return str(value)
    try:
        return str(value.__index__())  # type: ignore[attr-defined]
    except Exception:  # noqa: BLE001 - whatever it is, it names nothing
        return ""


def number(value: object) -> tuple[float | None, ScoreState]:
    """Return a score as a finite float with its state.

    None is missing. NaN, infinities, booleans, text that is no number and what is beyond
    `SCORE_LARGEST` are invalid.
    """
    if type(value) is float:
        return (value, "ok") if abs(value) <= SCORE_LARGEST else (None, "invalid")  # NaN compares false
    if value is None:
        return None, "missing"
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        return None, "invalid"
    try:
        found = float(value)  # type: ignore[arg-type]
    except Exception:  # noqa: BLE001 - text, lists, objects with a hostile __float__
        return None, "invalid"
    return (found, "ok") if abs(found) <= SCORE_LARGEST else (None, "invalid")


def text_hash(text: str) -> str:
    """Return 16 hex digits that name a text: equal in every process, for every spelling in Unicode.

    The text is brought to NFC and its runs of white space to one space.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    joined = " ".join(text.split())
    return blake2b(joined.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
