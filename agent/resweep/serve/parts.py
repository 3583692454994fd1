"""Parts of the agent made from its settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import resweep
from resweep import shipped
from resweep.detect.judge import Judge
from resweep.detect.passive.settings import PassiveSettings, with_holidays
from resweep.detect.settings import DetectSettings
from resweep.domain.clock import Clock
from resweep.domain.duration import seconds
from resweep.domain.invalidation import InvalidationRules
from resweep.domain.snapshot import STRATA
from resweep.label.settings import LabelSettings
from resweep.settings import Settings

if TYPE_CHECKING:
    from resweep.schedule.canaries import CanarySettings
    from resweep.schedule.casedesk import CaseDesk
    from resweep.store.settings import StoreSettings
    from resweep.store.sql import SqlStore

WEBHOOK = "webhook"
EVERY = "1h"  # between two runs of canaries


def version() -> str:
    """Return the version of resweep that runs."""
    return resweep.__version__


def store_settings(settings: Settings) -> StoreSettings:
    """Return what the store is told."""
    from resweep.store.settings import StoreSettings  # loads SQLAlchemy, which most commands never need

    keep = settings.retention
    return StoreSettings(
        series_configs=settings.metrics.configs,
        minutes_days=keep.minutes_days,
        hours_days=keep.hours_days,
        events_days=keep.events_days,
        events_max=keep.events_max,
        max_bytes=keep.store_bytes,
        webhook_targets=(WEBHOOK,) if settings.webhook.url else (),
    )


def detect_settings(settings: Settings) -> DetectSettings:
    """Return what the layers are told."""
    return DetectSettings(**asdict(settings.detect), severities=settings.severities)


def passive_settings(settings: Settings) -> PassiveSettings:
    """Return what the passive layers are told."""
    return with_holidays(settings.detect.holidays)


def canary_settings(settings: Settings) -> CanarySettings:
    """Return what canaries and probes are told. Raises UsageError for a stretch of time that is none."""
    from resweep.schedule.canaries import CanarySettings  # loads SQLAlchemy too

    canary, probe = settings.canary, settings.probe
    return CanarySettings(
        every_s=seconds(canary.every or EVERY),
        confirm_s=seconds(canary.confirm),
        texts=canary.texts,
        queries=canary.queries,
        file=canary.file,
        lease_s=canary.lease_s,
        poll_s=canary.poll_s,
        per_second=canary.per_second,
        probes_per_hour=probe.per_hour,
        probe_depth=probe.depth,
    )


def rules_of(settings: Settings) -> InvalidationRules:
    """Return the shipped rules with the user's before them. Raises InputError for a file that is none."""
    own = settings.agent.rules_file
    return shipped.invalidation_rules(Path(own) if own else None)


def judge_maker(settings: Settings, rules: InvalidationRules) -> Callable[[bytes | None], Judge]:
    """Return how a judge is made from a saved state."""
    told = detect_settings(settings)
    return lambda state: Judge(told, rules, state)


def label_settings(settings: Settings) -> LabelSettings:
    """Return what labelling is told."""
    section = settings.label
    return LabelSettings(
        daily={stratum: float(getattr(section, stratum)) for stratum in STRATA},
        seed=section.seed,
        holdout=section.holdout,
        wanted=section.wanted,
    )


def case_desk(settings: Settings, store: SqlStore, clock: Clock) -> CaseDesk:
    """Return a labelling desk over a store. Raises UsageError for an embedder that cannot be loaded."""
    from resweep.schedule.casedesk import CaseDesk  # loads scikit-learn

    named = settings.label.embedder
    embed = None
    if named:
        from resweep.serve.named import load_object

        embed = load_object(named)
    return CaseDesk(store, label_settings(settings), clock, embed)
