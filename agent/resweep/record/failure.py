"""What is kept of an exception: its class from the fixed list, never the object with its traceback."""

from __future__ import annotations

from threading import current_thread, main_thread
from typing import NamedTuple

from resweep.domain.faults import classify as classify_text

MESSAGE_LONGEST = 500


def spare_the_interrupt(error: BaseException) -> None:
    """Raise an interrupt again where it may be a person's, who works on the main thread.

    For what an object from outside raises when looked at: a lazy proxy may well exit or cancel.
    """
    if isinstance(error, KeyboardInterrupt) and current_thread() is main_thread():
        raise error


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
