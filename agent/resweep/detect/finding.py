"""What a layer finds in a pipeline's state: a flag in the making, before time and history are added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from resweep.domain.verdict import Component, Layer, Reason, Severity, VerdictState


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One reason that holds now. `about` tells apart findings of one reason on one config."""

    reason: Reason
    layer: Layer
    config: str
    basis: str
    components: tuple[Component, ...]
    severity: Severity
    message: str
    moves: VerdictState | None = None
    evidence: Mapping[str, object] = field(default_factory=dict)
    next_command: str = ""
    onset_ts: float | None = None
    onset_event: int | None = None
    about: str = ""

    def key(self, pipeline: str) -> str:
        """Return the identity of the flag this finding keeps open."""
        return ":".join(part for part in (pipeline, self.reason, self.config, self.about) if part)
