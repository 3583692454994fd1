"""Label values as the outside gave them, made fit for a page: the last defence, after recorder and store."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

LONGEST = 64
UNKNOWN = "unknown"
_HALF_PAIR = re.compile("[\ud800-\udfff]")


@lru_cache(maxsize=8192)
def clean(value: object) -> str:
    """Return a label value that renders and parses, equal for equal values and short.

    None and the empty string are "unknown"; half a surrogate pair becomes U+FFFD; more than 64 characters
    are cut to 64 and a hash of the whole, so that two long values stay apart.
    """
    text = _HALF_PAIR.sub("\ufffd", "" if value is None else str(value))
    if len(text) <= LONGEST:
        return text or UNKNOWN
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{text[:LONGEST]}-{digest}"
