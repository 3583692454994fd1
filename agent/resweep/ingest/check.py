"""Whether a batch can be counted: what decodes as one may still hold numbers that are no counts.

Names are the store's business, which shortens or refuses them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from resweep.domain.batch import Batch, ConfigRecord
from resweep.domain.errors import InputError
from resweep.domain.event import FEEDBACK_KINDS, Feedback
from resweep.domain.window import BUCKETS, Group, Histogram, Window

DEPTH_MAX = 50  # levels of a config document
COUNT_MAX = 1 << 53  # of one window; sums of such stay within a database's integer
MINUTE_MAX = 1 << 31
TS_MAX = 1e11
_GROUP_FIELDS = Group.__struct_fields__


def check_batch(batch: Batch) -> Batch:
    """Return the batch. Raises InputError where a part cannot be counted, naming the part."""
    _number(batch.seq, "seq")
    _time(batch.ts, "ts")
    for window in batch.windows:
        _window(window)
    for record in batch.configs:
        _config(record)
    for event in batch.events:
        _time(event.ts, f"event {event.id!r:.60}: ts")
    for feedback in batch.feedback:
        check_feedback(feedback)
    return batch


def check_feedback(feedback: Feedback) -> Feedback:
    """Return the feedback. Raises InputError where it cannot be counted."""
    if feedback.kind not in FEEDBACK_KINDS:
        raise InputError(f"feedback: expected one of {', '.join(FEEDBACK_KINDS)}; got {feedback.kind!r:.40}")
    _time(feedback.ts, f"feedback {feedback.id!r:.60}: ts")
    return feedback


def _config(record: ConfigRecord) -> None:
    if not _shallow(record.document, DEPTH_MAX) or not _shallow(record.observed, DEPTH_MAX):
        raise InputError(f"config of {record.pipeline!r:.60}: expected at most {DEPTH_MAX} levels")


def _window(window: Window) -> None:
    at = f"window {window.pipeline:.60}/{window.config:.12}/{window.minute}"
    if not 0 <= window.minute < MINUTE_MAX:
        raise InputError(f"{at}: expected minutes since 1970; got {window.minute}")
    for name, amount in window.counts.items():
        _number(amount, f"{at}: {name:.60}")
    for name, histogram in window.histograms.items():
        _histogram(histogram, name, at)
    for key, group in window.groups.items():
        for part in _GROUP_FIELDS:
            _number(getattr(group, part), f"{at}: {key:.60}.{part}")


def _histogram(histogram: Histogram, name: str, at: str) -> None:
    if name not in BUCKETS:
        raise InputError(f"{at}: expected a histogram out of {', '.join(BUCKETS)}; got {name!r:.60}")
    buckets = len(BUCKETS[name]) + 1
    if len(histogram.counts) != buckets:
        raise InputError(f"{at}: {name}: expected {buckets} bucket counts; got {len(histogram.counts)}")
    for count in histogram.counts:
        _number(count, f"{at}: {name}")
    if abs(histogram.total) > COUNT_MAX:
        raise InputError(f"{at}: {name}: the sum is out of range")


def _number(value: int, where: str) -> None:
    if not 0 <= value <= COUNT_MAX:
        raise InputError(f"{where}: expected a count from 0; got {value}")


def _time(value: float, where: str) -> None:
    if not 0 <= value < TS_MAX:
        raise InputError(f"{where}: expected unix seconds; got {value}")


def _shallow(value: object, levels: int) -> bool:
    """Whether nested data stays within a number of levels; a loop, not recursion."""
    layer = [value]
    for _ in range(levels):
        layer = [inner for outer in layer for inner in _inside(outer)]
        if not layer:
            return True
    return False


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list | tuple) else ()
