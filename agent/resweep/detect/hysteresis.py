"""A state that needs evidence over time: it opens after so many values in a row, and closes likewise.

A blip of two never opens it, a value that hovers between the two levels changes nothing, and a look without
data neither opens, closes nor counts.
"""

from __future__ import annotations

import msgspec


class Hysteresis(msgspec.Struct):
    """Opens at `open_at` or above for `in_a_row` values, closes at `close_at` or below for as many."""

    open_at: float
    close_at: float
    in_a_row: int = 3
    is_open: bool = False
    above: int = 0
    below: int = 0

    def step(self, value: float | None) -> bool:
        """Take one value, None where there was no data; return whether the state is open now."""
        if value is None:
            return self.is_open
        self.above = self.above + 1 if value >= self.open_at else 0
        self.below = self.below + 1 if value <= self.close_at else 0
        if self.is_open and self.below >= self.in_a_row:
            self.is_open = False
        elif not self.is_open and self.above >= self.in_a_row:
            self.is_open = True
        return self.is_open

    @property
    def doubted(self) -> bool:
        """Whether the next value matters more than usual: it may open or close the state."""
        return bool(self.below if self.is_open else self.above)
