"""resweep: says when the tuned k of a live retriever has expired.

`watch` records a retriever, `feedback` what users thought of its answers; the agent (`resweep agent`) does
the rest. Importing this loads nothing but itself: each name loads what it needs when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from resweep import redact as redact
    from resweep import testing as testing
    from resweep.domain.errors import ResweepError as ResweepError
    from resweep.domain.fingerprint import fingerprint as fingerprint
    from resweep.record.api import configure as configure
    from resweep.record.api import current_event_id as current_event_id
    from resweep.record.api import feedback as feedback
    from resweep.record.api import flush as flush
    from resweep.record.api import note as note
    from resweep.record.api import shutdown as shutdown
    from resweep.record.api import unwatch as unwatch
    from resweep.record.api import watch as watch

__version__ = "0.1.0"

_HOMES = {
    "ResweepError": "resweep.domain.errors",
    "configure": "resweep.record.api",
    "current_event_id": "resweep.record.api",
    "feedback": "resweep.record.api",
    "fingerprint": "resweep.domain.fingerprint",
    "flush": "resweep.record.api",
    "note": "resweep.record.api",
    "shutdown": "resweep.record.api",
    "unwatch": "resweep.record.api",
    "watch": "resweep.record.api",
}
__all__ = ["__version__", "redact", "testing", *sorted(_HOMES)]


def __getattr__(name: str) -> Any:
    if name in ("redact", "testing"):
        return import_module(f"resweep.{name}")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'resweep' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
