"""What the passive layers tell: flags that opened, sharpened or cleared, and the state of each layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from resweep.domain.verdict import FlagChange, Layer

__all__ = ["FlagChange", "LayerState", "State"]

State = Literal["learning", "quiet", "suspect", "alarm"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerState:
    """How one layer of one config stands.

    `evidence` is the natural log of evidence over threshold (0 is an alarm), `peak` its highest value of
    the last 28 days. `note` says in words what the layer still waits for, or what it looks at.
    """

    config: str
    layer: Layer
    state: State
    evidence: float
    peak: float
    note: str = ""
