"""Whether a batch can be applied at all: checked before the first row is touched."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

from resweep.domain.batch import Batch, ConfigRecord
from resweep.domain.errors import InputError
from resweep.domain.event import FEEDBACK_KINDS, Feedback, RetrievalEvent
from resweep.domain.window import BUCKETS, Group, Histogram, Window
from resweep.store.names import label, plain
from resweep.store.payload import NAMES_MAX, OTHER

COUNT_MAX = 10**12  # of one count in one window
SUM_MAX = 2**53  # of one fixed-point sum
GROUPS_MAX = 256  # filter keys of one window
AHEAD_S = 86_400.0  # a clock may go this much faster than the agent's
HITS_MAX = 10_000
RECORDS_MAX = 100_000  # windows, events and feedback of one batch
_CONFIG = re.compile(r"[0-9A-Za-z_.-]{1,64}")


def check_batch(batch: Batch, now: float) -> None:
    """Raise InputError for a batch with anything in it that cannot be counted or kept."""
    plain("a writer id", batch.writer, 64)
    if not 0 <= batch.seq < 2**62:
        raise InputError(f"expected a sequence number from 0 up; got {batch.seq}")
    records = len(batch.configs) + len(batch.windows) + len(batch.events) + len(batch.feedback)
    if records > RECORDS_MAX:
        raise InputError(f"expected at most {RECORDS_MAX} records in a batch; got {records}: send several")
    for record in batch.configs:
        _config_record(record, now)
    for window in batch.windows:
        _window(window, now)
    for event in batch.events:
        _event(event, now)
    check_feedback(batch.feedback, now)


def check_feedback(feedback: Iterable[Feedback], now: float) -> None:
    """Raise InputError for feedback that cannot be kept."""
    for one in feedback:
        plain("an event id", one.event_id)
        plain("a feedback id", one.id)
        if one.rater:
            plain("a rater", one.rater)
        if one.kind not in FEEDBACK_KINDS:
            raise InputError(f"expected feedback of a kind in {', '.join(FEEDBACK_KINDS)}; got {one.kind!r}")
        _time(f"feedback {one.id!r}", one.ts, now)


def _time(what: str, ts: float, now: float) -> None:
    if not math.isfinite(ts) or not 0 <= ts <= now + AHEAD_S:
        raise InputError(
            f"{what}: expected a unix time in seconds, at most a day ahead of {now:.0f}; got {ts}: "
            f"check the clock of its host"
        )


def check_config(config: str) -> None:
    """Raise InputError for a config id that cannot label a series."""
    if not _CONFIG.fullmatch(config) or config == OTHER:
        raise InputError(f"expected a config id (12 hex digits); got {config[:40]!r}")


def _config_record(record: ConfigRecord, now: float) -> None:
    label(record.pipeline)
    check_config(record.config)
    plain("a basis id", record.basis, 80)
    if len(record.digest) > 80:
        raise InputError(f"config {record.config}: expected a digest; got {len(record.digest)} characters")
    _time(f"config {record.config!r}", record.first_ts, now)


def _window(window: Window, now: float) -> None:
    label(window.pipeline)
    check_config(window.config)
    where = f"window {window.minute} of {window.pipeline[:64]!r}/{window.config}"
    _time(where, window.minute * 60.0, now)
    if len(window.counts) > NAMES_MAX or len(window.groups) > GROUPS_MAX:
        raise InputError(f"{where}: too many counts ({len(window.counts)}) or groups ({len(window.groups)})")
    _counts(where, window.counts)
    for name, histogram in window.histograms.items():
        _histogram(f"{where}: {name[:64]!r}", name, histogram)
    for key, group in window.groups.items():
        _counts(f"{where}: filter {key[:64]!r}", _as_counts(key, group))


def _as_counts(key: str, group: Group) -> Mapping[str, int]:
    return {key: 0} | {name: getattr(group, name) for name in group.__struct_fields__}


def _counts(where: str, counts: Mapping[str, int]) -> None:
    for name, n in counts.items():
        if len(name) > 200 or not _encodable(name):
            raise InputError(f"{where}: expected a name of at most 200 characters; got {name[:40]!r}")
        if type(n) is not int or not 0 <= n <= COUNT_MAX:
            raise InputError(f"{where}: expected {name!r} to be a count from 0 to {COUNT_MAX}; got {n!r}")


def _histogram(where: str, name: str, histogram: Histogram) -> None:
    bounds = BUCKETS.get(name)
    if bounds is None or len(histogram.counts) != len(bounds) + 1:
        raise InputError(f"{where}: expected the buckets of a known histogram; got {len(histogram.counts)}")
    if any(type(n) is not int or not 0 <= n <= COUNT_MAX for n in histogram.counts):
        raise InputError(f"{where}: expected bucket counts from 0 to {COUNT_MAX}; got {histogram.counts}")
    if type(histogram.total) is not int or abs(histogram.total) > SUM_MAX:
        raise InputError(f"{where}: expected a sum within 2^53 millionths; got {histogram.total!r}")


def _event(event: RetrievalEvent, now: float) -> None:
    plain("an event id", event.id)
    label(event.pipeline)
    check_config(event.config)
    _time(f"event {event.id!r}", event.ts, now)
    if event.trace_id:
        plain("a trace id", event.trace_id)
    if event.user_key:
        plain("a user key", event.user_key)
    if len(event.hits) > HITS_MAX:
        raise InputError(f"event {event.id!r}: expected at most {HITS_MAX} hits; got {len(event.hits)}")


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
