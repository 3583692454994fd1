"""Whether a batch can be counted: what decodes as one may still hold numbers that are no counts."""

from __future__ import annotations

from collections.abc import Iterable

from resweep.domain.batch import Batch
from resweep.domain.errors import InputError
from resweep.domain.event import FEEDBACK_KINDS, Feedback
from resweep.domain.window import BUCKETS, Group, Histogram, Window

NAME_MAX = 64  # characters of a pipeline, config, writer or count
ID_MAX = 200  # characters of the id of an event or of feedback
COUNT_MAX = 1 << 62  # what a database integer holds, with room to add
MINUTE_MAX = 1 << 31
TS_MAX = 1e11
_GROUP_FIELDS = Group.__struct_fields__


def check_batch(batch: Batch) -> Batch:
    """Return the batch. Raises InputError where a part cannot be counted, naming the part."""
    _name(batch.writer, "writer")
    _number(batch.seq, "seq")
    if not 0 <= batch.ts < TS_MAX:
        raise InputError(f"expected ts in unix seconds; got {batch.ts}")
    for window in batch.windows:
        _window(window)
    for record in batch.configs:
        _names((record.pipeline, record.config, record.basis), "configs")
    for event in batch.events:
        _name(event.id, "events", ID_MAX)
        _names((event.pipeline, event.config), "events")
    for feedback in batch.feedback:
        check_feedback(feedback)
    return batch


def check_feedback(feedback: Feedback) -> Feedback:
    """Return the feedback. Raises InputError where it cannot be kept."""
    _name(feedback.id, "feedback", ID_MAX)
    _name(feedback.event_id, "feedback", ID_MAX)
    _name(feedback.rater or "-", "feedback", ID_MAX)
    if feedback.kind not in FEEDBACK_KINDS:
        raise InputError(f"feedback: expected one of {', '.join(FEEDBACK_KINDS)}; got {feedback.kind!r:.40}")
    if not 0 <= feedback.ts < TS_MAX:
        raise InputError(f"feedback: expected ts in unix seconds; got {feedback.ts}")
    return feedback


def _window(window: Window) -> None:
    at = f"window {window.pipeline}/{window.config}/{window.minute}"
    _names((window.pipeline, window.config), "window")
    if not 0 <= window.minute < MINUTE_MAX:
        raise InputError(f"{at}: expected minutes since 1970; got {window.minute}")
    for name, amount in window.counts.items():
        _name(name, at)
        _number(amount, f"{at}: {name}")
    for name, histogram in window.histograms.items():
        _histogram(histogram, name, at)
    for key, group in window.groups.items():
        _name(key or "-", at)
        for part in _GROUP_FIELDS:
            _number(getattr(group, part), f"{at}: {key}.{part}")


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


def _names(names: Iterable[str], where: str) -> None:
    for name in names:
        _name(name, where)


def _name(name: str, where: str, at_most: int = NAME_MAX) -> None:
    if not 0 < len(name) <= at_most or "\x00" in name or not _encodable(name):
        raise InputError(f"{where}: expected a name of 1 to {at_most} characters; got {name!r:.60}")


def _encodable(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _number(value: int, where: str) -> None:
    if not 0 <= value <= COUNT_MAX:
        raise InputError(f"{where}: expected a count from 0; got {value}")
