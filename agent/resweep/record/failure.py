"""What is kept of an exception: its class from the fixed list, never the object with its traceback."""

from __future__ import annotations

from typing import NamedTuple

from resweep.domain.faults import classify as classify_text

MESSAGE_LONGEST = 500


class Failure(NamedTuple):
    """A failed call: its class, and for a dimension mismatch the vector size that came and the one held.

    `message` is content: it goes on only where content capture is on.
    """

    error_class: str
    got: int | None = None
    expected: int | None = None
    message: str = ""


def classify(error: BaseException) -> Failure:
    """Return the class of an exception by its type, those it derives from, and its message; never raises."""
    try:
        message = str(error)[: 4 * MESSAGE_LONGEST]
    except Exception:  # noqa: BLE001 - an exception may fail to say what it is
        message = ""
    fault = classify_text(type(error).__name__, message)
    for kind in type(error).__mro__[1:]:
        if fault.name != "other":
            break
        fault = classify_text(kind.__name__, None)
    return Failure(fault.name, fault.got, fault.expected, message[:MESSAGE_LONGEST])
