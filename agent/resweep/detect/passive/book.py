"""The open flags of one config, and what changed about them since they were last asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from resweep.detect.passive.changes import FlagChange
from resweep.domain.verdict import Component, Flag, Layer, Reason, Severity, VerdictState


def _number(number: int) -> int | None:
    return number if number >= 0 else None


class Book:
    """One flag a reason at a time: opened once, sharpened, cleared."""

    def __init__(self, pipeline: str, config: str, basis: str) -> None:
        self.pipeline, self.config, self.basis = pipeline, config, basis
        self.open: dict[Reason, Flag] = {}
        self.changes: list[FlagChange] = []
        self._count = 0

    def opened(
        self,
        reason: Reason,
        layer: Layer,
        components: tuple[Component, ...],
        severity: Severity,
        message: str,
        evidence: Mapping[str, object],
        *,
        ts: float,
        number: int,
        onset_ts: float,
        onset_number: int,
    ) -> Flag:
        """Open a flag, or sharpen the one of this reason that is open."""
        if reason in self.open:
            return self.updated(reason, components, severity, message, evidence)
        self._count += 1
        flag = Flag(
            key=f"{self.pipeline}/{self.config}/{reason}/{self._count}",
            pipeline=self.pipeline,
            config=self.config,
            basis=self.basis,
            reason=reason,
            layer=layer,
            components=components,
            severity=severity,
            message=message,
            opened_ts=ts,
            moves=_moves(reason, severity),
            evidence=evidence,
            next_command=_next(reason, self.pipeline),
            onset_ts=onset_ts,
            opened_at_event=_number(number),
            onset_event=_number(onset_number),
        )
        self.open[reason] = flag
        self.changes.append(FlagChange(flag, "opened"))
        return flag

    def updated(
        self,
        reason: Reason,
        components: tuple[Component, ...],
        severity: Severity,
        message: str,
        evidence: Mapping[str, object],
    ) -> Flag:
        """Sharpen an open flag; told only where something a reader sees has changed."""
        old = self.open[reason]
        flag = replace(
            old,
            components=components,
            severity=severity,
            message=message,
            evidence={**old.evidence, **evidence},
            moves=_moves(reason, severity),
        )
        if flag != old:
            self.open[reason] = flag
            self.changes.append(FlagChange(flag, "updated"))
        return flag

    def cleared(self, reason: Reason, ts: float, number: int) -> None:
        """Clear an open flag; nothing where none is."""
        flag = self.open.pop(reason, None)
        if flag is not None:
            closed = replace(flag, cleared_ts=ts, cleared_at_event=_number(number))
            self.changes.append(FlagChange(closed, "cleared"))


def _moves(reason: Reason, severity: Severity) -> VerdictState | None:
    """Only a reason to doubt k moves its verdict; a worse outcome is another flag."""
    return "suspect" if severity != "notice" and reason in ("silent_change", "traffic_changed") else None


def _next(reason: Reason, pipeline: str) -> str:
    if reason in ("silent_change", "traffic_changed"):
        return f"resweep sweep {pipeline}"
    return f"resweep status {pipeline}"
