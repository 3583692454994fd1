"""What the judge keeps between two looks: plain structs that survive a restart as JSON."""

from __future__ import annotations

import msgspec

from resweep.detect.generator import Fact
from resweep.domain.batch import ConfigRecord
from resweep.domain.event import UNKNOWN
from resweep.domain.window import Group

NEVER = float("-inf")


class Served(msgspec.Struct):
    """The run of completed calls in which nothing asked for was fully served."""

    calls: int = 0
    cut: int = 0  # of these, calls in which a stage after the index cut below what was asked
    most: int = 0  # passages, the most any of them returned
    asked: int = 0  # the deepest request
    since_event: int | None = None

    def restart(self) -> None:
        """Forget: a call was served."""
        self.calls = self.cut = self.most = self.asked = 0
        self.since_event = None


class ConfigState(msgspec.Struct):
    """One config of a pipeline: how long it has been answering, and what its calls were like."""

    record: ConfigRecord
    first_ts: float = 0.0
    last_ts: float = -1.0  # unix seconds; -1 before its first event
    first_event: int | None = None
    calls: int = 0
    run: int = 0  # calls since another config of this pipeline answered
    run_event: int | None = None  # event number at which that run began
    run_ts: float = 0.0
    overlap_ts: float | None = None  # since when another config has been answering too
    asked: dict[int, int] = msgspec.field(default_factory=dict)
    served: Served = msgspec.field(default_factory=Served)
    dims: dict[str, int] = msgspec.field(default_factory=dict)
    dims_ts: float = 0.0
    dims_event: int | None = None
    plain: Group = msgspec.field(default_factory=Group)  # all completed calls
    groups: dict[str, Group] = msgspec.field(default_factory=dict)  # by filter key
    facts: dict[str, Fact] = msgspec.field(default_factory=dict)  # of the answers, by name

    @property
    def seen(self) -> bool:
        """Whether it ever answered."""
        return self.calls > 0


class Change(msgspec.Struct):
    """A settled change of basis, until it is tuned or undone."""

    from_config: str
    to_config: str
    from_basis: str
    to_basis: str
    ts: float
    opened_event: int | None
    onset_ts: float
    onset_event: int | None


class PipelineState(msgspec.Struct):
    """One pipeline: its configs, the one in charge, and the change that brought it there."""

    name: str
    configs: dict[str, ConfigState] = msgspec.field(default_factory=dict)
    current: str | None = None
    latest: str | None = None  # the config seen last
    first_basis: str | None = None
    change: Change | None = None
    gap_s: float = 0.0  # mean time between events, slowly forgetting
    last_ts: float = -1.0

    def state(self, config: str) -> ConfigState:
        """Return a config's state, made on first sight (an undeclared config is its own basis)."""
        found = self.configs.get(config)
        if found is None:
            record = ConfigRecord(
                pipeline=self.name, config=config, basis=config, document={}, complete=False
            )
            found = self.configs[config] = ConfigState(record)
        return found

    def declare(self, record: ConfigRecord) -> None:
        """Take a config's declaration; a declaration known before may bring newly observed facts."""
        found = self.configs.get(record.config)
        if found is None:
            self.configs[record.config] = ConfigState(record)
        elif record.document or not found.record.document:
            found.record = record

    @property
    def in_charge(self) -> ConfigState | None:
        """The settled config's state."""
        return None if self.current is None else self.configs[self.current]

    def others_last(self, config: str) -> float:
        """Return when any other config answered last; minus infinity if none did."""
        return max((c.last_ts for id_, c in self.configs.items() if id_ != config and c.seen), default=NEVER)


def short(value: object) -> str:
    """Return a value as words for a message: short, one line."""
    text = UNKNOWN if value is None else str(value)
    return text if len(text) <= 60 else text[:57] + "..."
