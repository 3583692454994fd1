"""The tokens of every prefix of every list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from resweep.domain.measures import FloatArray, IntArray
from resweep.sweep.lists import RankedList

Counts: TypeAlias = NDArray[np.int32]
_BEYOND = np.iinfo(np.int32).max


@dataclass(frozen=True, slots=True, eq=False)
class Spent:
    """`upto[i, k]` is the tokens of the first k passages of case i, copies included, for they are sent.

    Beyond the end of a list (`lengths[i]` passages) it holds the largest number there is.
    """

    upto: Counts
    lengths: IntArray

    def of(self, kept: IntArray) -> FloatArray:
        """Return the tokens of the first `kept[i]` passages of each case, or of all there are."""
        tokens = self.upto[np.arange(len(self.lengths)), np.minimum(kept, self.lengths)]
        return tokens.astype(np.float64)

    def within(self, budget: int) -> IntArray:
        """Return how many passages of each case fit into a budget: the longest prefix."""
        fitting: IntArray = (self.upto <= budget).sum(axis=1).astype(np.int64)
        return fitting - 1


def spent_tokens(lists: Sequence[RankedList | None], default: int | None) -> Spent | None:
    """Return the tokens of every prefix; `default` stands in for unknown ones, None where none stands in."""
    lengths = np.array([0 if one is None else len(one.ids) for one in lists], dtype=np.int64)
    upto: Counts = np.full((len(lists), int(lengths.max(initial=0)) + 1), _BEYOND, dtype=np.int32)
    upto[:, 0] = 0
    for row, ranked in zip(upto, lists, strict=True):
        sizes = [] if ranked is None else _sizes(ranked, default)
        if sizes is None:
            return None
        row[1 : len(sizes) + 1] = np.cumsum(sizes)
    return Spent(upto, lengths)


def _sizes(ranked: RankedList, default: int | None) -> list[int] | None:
    known = ranked.tokens or (None,) * len(ranked.ids)
    sizes = [size if size is not None else default for size in known]
    stated = [size for size in sizes if size is not None]
    return stated if len(stated) == len(sizes) else None
