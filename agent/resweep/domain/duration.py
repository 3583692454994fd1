"""Stretches of time as people write them."""

from __future__ import annotations

import re

from resweep.domain.errors import UsageError

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_WRITTEN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", re.IGNORECASE)


def seconds(written: str | float) -> float:
    """Return seconds: `90`, `90s`, `15m`, `1h`, `7d`. Raises UsageError for anything else, and for 0."""
    found = _WRITTEN.fullmatch(str(written))
    unit = _UNITS.get(found.group(2).lower()) if found else None
    if found is None or unit is None or float(found.group(1)) <= 0:
        raise UsageError(f"expected a stretch of time like 90s, 15m, 1h or 7d; got {written!r:.40}")
    return float(found.group(1)) * unit
