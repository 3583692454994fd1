"""Flags and verdicts: what resweep says, and the words it says it with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

Severity = Literal["notice", "warning", "page"]
VerdictState = Literal["valid", "suspect", "expired", "untuned", "too_little_data"]
Layer = Literal["declared", "introspected", "active", "twins", "levels", "outcome"]
Reason = Literal[
    "config_changed",
    "k_mismatch",
    "untuned",
    "silent_change",
    "traffic_changed",
    "not_served",
    "short_returns",
    "filter_starves",
    "stage_cut",
    "dimension_mismatch",
    "score_scale",
    "ids_renumbered",
    "quality_drop",
    "canary_lost",
    "record_expired",
    "labelled_set_stale",
    "judge_stale",
    "mixed_fleet",
    "contradiction",
]
Component = Literal[
    "embedder",
    "chunker",
    "reranker",
    "depth",
    "filter",
    "corpus",
    "index",
    "generator",
    "prompt",
    "traffic",
    "outcome",
    "unknown",
]

REASONS: tuple[Reason, ...] = get_args(Reason)
COMPONENTS: tuple[Component, ...] = get_args(Component)
VERDICT_STATES: tuple[VerdictState, ...] = get_args(VerdictState)
LAYERS: tuple[Layer, ...] = get_args(Layer)
# Worst first; `too_little_data` only where no layer can judge.
WORST_FIRST: tuple[VerdictState, ...] = ("expired", "suspect", "untuned", "valid", "too_little_data")
PROMETHEUS_SEVERITY: Mapping[Severity, str] = {"notice": "info", "warning": "warning", "page": "critical"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One open (or closed) reason to doubt the tuned k or the quality.

    `key` is its identity while open: the same cause seen again is the same flag. `config` and `basis` are
    12-hex ids. `moves` is the verdict this flag brings its basis to while open, None where it moves none.
    `opened_at_event`, `onset_event` and `cleared_at_event` count events from 0 in a replay and are None in
    a live agent. Times are unix seconds. `components` holds at most two names, most probable first.
    """

    key: str
    pipeline: str
    config: str
    basis: str
    reason: Reason
    layer: Layer
    components: tuple[Component, ...]
    severity: Severity
    message: str
    opened_ts: float
    moves: VerdictState | None = None
    evidence: Mapping[str, object] = field(default_factory=dict)
    next_command: str = ""
    onset_ts: float | None = None
    cleared_ts: float | None = None
    opened_at_event: int | None = None
    onset_event: int | None = None
    cleared_at_event: int | None = None


@dataclass(frozen=True, slots=True)
class FlagChange:
    """A flag that opened, sharpened (`updated`) or cleared; `flag` is its whole state after the change."""

    flag: Flag
    kind: Literal["opened", "updated", "cleared"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The state of one (pipeline, basis), with the reason in words. `since` is unix seconds."""

    pipeline: str
    basis: str
    config: str
    state: VerdictState
    why: str
    since: float
    next_command: str = ""


def worst(states: list[VerdictState]) -> VerdictState:
    """Return the worst of some verdict states; `too_little_data` for none."""
    return min(states, key=WORST_FIRST.index, default="too_little_data")


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedK:
    """A depth chosen for one (pipeline, basis, epoch): the record beside the hash.

    `observed` holds the facts at tuning time (canary digest, vector size, passage count, corpus revision).
    `best_set` is the set of context depths not distinguishable from the best. `grid` and `slices` tell in
    brief what was swept and how the slices fared. Times are unix seconds.
    """

    pipeline: str
    basis: str
    context_k: int
    candidate_k: int | None = None
    epoch: int = 1
    parts: Mapping[str, object] = field(default_factory=dict)
    best_set: tuple[int, ...] = ()
    objective: str | None = None
    constraints: Mapping[str, object] = field(default_factory=dict)
    labelled_set: Mapping[str, object] = field(default_factory=dict)
    grid: Mapping[str, object] = field(default_factory=dict)
    slices: Mapping[str, object] = field(default_factory=dict)
    weak_cases: tuple[str, ...] = ()
    report: str | None = None
    judge: Mapping[str, object] = field(default_factory=dict)
    observed: Mapping[str, object] = field(default_factory=dict)
    tuned_at: float = 0.0
    tuned_by: str = ""
    because: str = ""
    valid_until: float | None = None
    provisional: bool = False
