"""What the declared and introspected layers wait for before they speak."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

from resweep.domain.verdict import Reason, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectSettings:
    """Times in seconds, counts in events.

    A new config takes over once it answered `switch_events` events in a row over at least
    `switch_quiet_s`, or once every other config has been silent for `settle_s`. Two configs that keep
    answering side by side for `mixed_after_s` are a mixed fleet; a rolling deploy is over before that.
    On `holidays` (UTC) people ask as on a Sunday. `severities` overrides the severity of a reason.
    """

    switch_events: int = 25
    switch_quiet_s: float = 20.0
    settle_s: float = 900.0
    mixed_after_s: float = 1200.0
    mixed_gap_s: float = 300.0
    not_served_events: int = 30
    dimension_events: int = 3
    quiet_after_s: float = 900.0
    filter_events: int = 10
    filter_level: float = 1e-6
    tuned_change_notice_s: float = 86400.0
    retire_s: float = 86400.0
    holidays: tuple[date, ...] | None = None
    severities: Mapping[Reason, Severity] = field(default_factory=dict)
