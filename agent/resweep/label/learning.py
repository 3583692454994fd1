"""What a config's confidence usually looks like, learnt from its own traffic.

Scores of two embedders cannot be compared, so nothing here crosses configs. Which way scores run is learnt
from the order of the answers: until it is clear, nothing is low.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from resweep.domain.sampling import LOWEST, Pooled, Reference, Signals

KEPT = 2000  # answers of a config that its reference is made from: the latest
READY = 200  # answers before there is a reference
GRID = 21
CLEAR = 0.5  # share of answers by which one direction must lead the other
Rows = Mapping[str, Sequence[Signals]]


class Learnt(msgspec.Struct):
    """The latest signals of each config of a pipeline, and up to when (unix s) they were learnt."""

    until: float = 0.0
    rows: dict[str, list[Signals]] = {}

    def learn(self, pool: Iterable[Pooled], until: float) -> None:
        """Take the events of an hour in, once: what is older than the last is left out."""
        if until <= self.until:
            return
        self.rows = {config: list(rows[-KEPT:]) for config, rows in self.with_rows(pool).items()}
        self.until = until

    def with_rows(self, pool: Iterable[Pooled]) -> Rows:
        """Return what was learnt and the rows of some events, by config."""
        rows = {config: list(known) for config, known in self.rows.items()}
        for one in pool:
            if one.found is not None:
                rows.setdefault(one.config, []).append(one.found)
        return rows


def references(rows: Rows) -> dict[str, Reference]:
    """Return the reference of each config that has answers enough and a clear direction."""
    made = {config: reference(some[-KEPT:]) for config, some in sorted(rows.items())}
    return {config: found for config, found in made.items() if found is not None}


def reference(rows: Sequence[Signals]) -> Reference | None:
    """Return the reference made of some answers; None for fewer than `READY`, or with no clear direction."""
    if len(rows) < READY:
        return None
    values = np.array(rows, dtype=np.float64)
    steps = np.sign(values[:, 0] - values[:, 1])
    up, down = int((steps > 0).sum()), int((steps < 0).sum())
    if abs(up - down) <= CLEAR * (up + down):
        return None
    sign = 1 if up > down else -1
    found = Reference(
        sign=sign,
        top=_grid(sign * values[:, 0]),
        margin=_grid(sign * (values[:, 0] - values[:, 1])),
        peak=_grid(-values[:, 2]),
        low=0.0,
    )
    ranks = [found.confidence(row) for row in rows]
    return msgspec.structs.replace(found, low=float(np.quantile(ranks, LOWEST)))


def _grid(values: np.typing.NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(float(v) for v in np.quantile(values, np.linspace(0.0, 1.0, GRID)))
