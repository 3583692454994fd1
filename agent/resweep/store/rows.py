"""What the store gives back where the domain has no word for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from resweep.domain.batch import ConfigRecord
from resweep.domain.event import FeedbackKind
from resweep.domain.verdict import Flag

Change = Literal["opened", "cleared"]
Slot = Literal["own", "other", "pool", ""]
Action = Literal["ack", "resolve"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigSeen:
    """A config and its place among the others. Times are unix seconds.

    `declared` is False for a config known by its id alone. `parent` is the config id that answered before
    it. `last_active` is when the agent last heard of its traffic, by its own clock. `slot` says where its
    counts go: series of its `own`, `other` of its pipeline, the `pool` of pipelines beyond the twentieth;
    empty once it has retired, at `retired_at`.
    """

    record: ConfigRecord
    declared: bool
    parent: str | None
    first_seen: float
    last_seen: float
    last_active: float
    slot: Slot
    retired_at: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackRow:
    """One word of one rater on one retrieval. `config` and `minute` are None while it is kept aside.

    `stands` is False where a later word of the same rater overruled it, or while it is kept aside.
    """

    event_id: str
    kind: FeedbackKind
    rater: str | None
    id: str
    ts: float
    pipeline: str | None
    config: str | None
    minute: int | None
    stands: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """The runs of one job of the agent. Times are unix seconds, None before the first.

    `tick` is the tick started last, `covered` the end of the time served, `lateness_s` that of the last run.
    """

    name: str
    tick: float | None = None
    covered: float | None = None
    started: float | None = None
    succeeded: float | None = None
    next_due: float | None = None
    runs: int = 0
    failures: int = 0
    late: int = 0
    skipped: int = 0
    lateness_s: float | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance:
    """Announced work on a pipeline, from `started` until `ended`, at the latest `until`."""

    id: int
    pipeline: str
    started: float
    until: float | None
    ended: float | None
    who: str
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ack:
    """Somebody has seen a flag (`ack`), or says that its cause is gone (`resolve`)."""

    pipeline: str
    key: str
    opened_ts: float
    action: Action
    who: str
    because: str
    ts: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """Who did what, when, to what."""

    ts: float
    who: str
    action: str
    subject: str
    details: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One call to make: a flag opened or cleared, for one named receiver."""

    id: int
    target: str
    change: Change
    flag: Flag
    created: float
    attempts: int
    next_try: float
    delivered: float | None
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """How many rows one round of housekeeping retired or removed."""

    configs_retired: int = 0
    windows: int = 0
    events: int = 0
    cases: int = 0
    feedback_expired: int = 0
    writers: int = 0
    deliveries: int = 0
