"""A body of `resweep.event/1` lines as one batch, so that it enters the store the way recorders' counts do.

The batch is named by the digest of the body: a sender that repeats a body after a lost answer changes
nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from resweep.domain.batch import Batch, ConfigRecord
from resweep.domain.event import Feedback, RetrievalEvent
from resweep.domain.fold import fold
from resweep.domain.invalidation import InvalidationRules
from resweep.domain.window import MINUTE, Window
from resweep.ingest.jsonlines import BadLine, EventLine, Item, LineReader
from resweep.ingest.pool import kept

BAD_SHOWN = 20


@dataclass(slots=True)
class Lines:
    """What a body held: its batch, and what could not be used."""

    batch: Batch
    events: int = 0
    bad_lines: int = 0
    bad: list[BadLine] = field(default_factory=list)
    unknown_fields: Mapping[str, int] = field(default_factory=dict)


def read_lines(body: bytes, rules: InvalidationRules, now: float) -> Lines:
    """Return the batch in a body received at `now` (unix s). Bad lines are told; the rest counts."""
    reader = LineReader(rules)
    lines = Lines(Batch(writer=f"lines-{hashlib.sha256(body).hexdigest()[:40]}", seq=0, ts=now))
    windows: dict[tuple[str, str, int], Window] = {}
    events: list[RetrievalEvent] = []
    for item in reader.read(body.splitlines()):
        _take(item, lines, windows, events)
    lines.batch.events = list(kept(events))
    for event in lines.batch.events:
        windows[event.pipeline, event.config, int(event.ts // MINUTE)].add("sampled:uniform")
    lines.batch.windows = list(windows.values())
    lines.unknown_fields = reader.unknown_fields
    return lines


def _take(
    item: Item, lines: Lines, windows: dict[tuple[str, str, int], Window], events: list[RetrievalEvent]
) -> None:
    if isinstance(item, EventLine):
        lines.events += 1
        events.append(item.event)
        _fold(item, windows)
    elif isinstance(item, ConfigRecord):
        lines.batch.configs.append(item)
    elif isinstance(item, Feedback):
        lines.batch.feedback.append(item)
    else:
        lines.bad_lines += 1
        if len(lines.bad) < BAD_SHOWN:
            lines.bad.append(item)


def _fold(line: EventLine, windows: dict[tuple[str, str, int], Window]) -> None:
    event = line.event
    key = (event.pipeline, event.config, int(event.ts // MINUTE))
    window = windows.setdefault(key, Window(*key))
    fold(window, event)
    if line.sizes is not None:
        window.add(f"dim:{line.sizes[0]}:{line.sizes[1]}")
