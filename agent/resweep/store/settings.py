"""What the store keeps, for how long, and what it exposes."""

from __future__ import annotations

from dataclasses import dataclass

DAY = 86_400.0
OWN_CONFIGS_MAX = 20  # configs with series of their own, over all pipelines and whatever is set
OWN_PIPELINES_MAX = 20  # pipelines with counters of their own; the rest share `other`
PIPELINES_MAX = 500  # more names than this are a mistake: somebody names a pipeline per user


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """Bounds of a store; days and seconds as the names say.

    `series_configs`: configs of a pipeline that keep their own series (at most 20 over all pipelines).
    `retire_after_s`: a config without traffic for this long ends its series and frees its place.
    `cleared_visible_s`: how long a cleared flag is still exposed as 0.
    `aside_days`: how long feedback for an unknown retrieval waits for it.
    `writers_days`: how long a silent writer's batch numbers are remembered.
    `max_bytes`: refuse to grow an SQLite file beyond this; None for the disk's own bound.
    `webhook_targets`: names of the receivers for which openings and clearings of flags are put in the outbox.
    """

    series_configs: int = 5
    retire_after_s: float = DAY
    cleared_visible_s: float = 3600.0
    minutes_days: float = 14.0
    hours_days: float = 400.0
    events_days: float = 30.0
    events_max: int = 200_000
    aside_days: float = 7.0
    writers_days: float = 30.0
    outbox_days: float = 30.0
    busy_timeout_s: float = 5.0
    max_bytes: int | None = None
    webhook_targets: tuple[str, ...] = ()
