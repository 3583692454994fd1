"""Names from outside made fit to be stored and to label a series."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from difflib import get_close_matches
from functools import lru_cache

from resweep.domain.errors import InputError
from resweep.domain.event import UNKNOWN

LONGEST = 64
HUGE = 10_000  # nobody's name: a document or a prompt went where the name belongs
_UNFIT = re.compile("[\ud800-\udfff\x00]")  # half a surrogate pair, and what PostgreSQL refuses


@lru_cache(maxsize=4096)
def label(name: str | None) -> str:
    """Return a name as the store keeps it: at most 64 characters, encodable, equal for equal names.

    None and the empty name are "unknown"; of a longer name the end is replaced by a hash of the whole, so
    that two long names stay apart. Raises InputError for more than 10,000 characters.
    """
    if not name:
        return UNKNOWN
    if len(name) > HUGE:
        raise InputError(f"expected a name of at most {HUGE} characters; got {len(name)}: {name[:40]!r}…")
    text = _UNFIT.sub("\ufffd", name)
    if len(text) <= LONGEST:
        return text
    return f"{text[: LONGEST - 9]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def plain(what: str, value: str, longest: int = 200) -> str:
    """Return an id from outside as it is; raises InputError where it cannot be stored or looked up."""
    if not value or len(value) > longest or _UNFIT.search(value):
        raise InputError(f"expected {what} of 1 to {longest} plain characters; got {value[:40]!r}")
    return value


def unseen(pipeline: str, known: Sequence[str]) -> str:
    """Return the sentence on a pipeline that nobody has seen: a slip, or one that is still to come."""
    near = get_close_matches(pipeline, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known are: {', '.join(known) or 'none'}"
    return f"no pipeline {pipeline!r} was seen so far; {hint}"
