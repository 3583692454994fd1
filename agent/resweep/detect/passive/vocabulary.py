"""Which passages, sources and words this pipeline has shown, since when, and with how many tokens."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import msgspec


class Seen(msgspec.Struct, gc=False):
    """One passage, source or word: unix times of first and last sight, and what it looked like last."""

    first: float
    last: float
    source: int = 0
    tokens: int = 0
    count: int = 1


def trim(items: dict[int, Any], size: int) -> None:
    """Drop the oldest tenth of a dict that outgrew its size; one by one would scan past the dropped ones."""
    if len(items) > size:
        for key in list(islice(items, max(1, size // 10))):
            del items[key]


class Vocabulary:
    """A bounded memory of hashes; the oldest entries go first."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.items: dict[int, Seen] = {}

    def see(self, ts: float, items: Sequence[int], sources: Sequence[int], tokens: Sequence[int]) -> None:
        """Note one sight of each item; 0 stands for unknown and is left out."""
        known = self.items
        for i, item in enumerate(items):
            seen = known.get(item)
            if seen is not None:
                seen.last = ts
                seen.count += 1
            elif item:
                known[item] = Seen(ts, ts, sources[i], tokens[i])
        if len(known) > self.size:
            self._evict()

    def _evict(self) -> None:
        kept = sorted(self.items.items(), key=lambda pair: -pair[1].last)[: self.size * 3 // 4]
        self.items = dict(sorted(kept, key=lambda pair: pair[1].first))

    def known(self, item: int, before: float) -> bool:
        """Whether something was seen before a time."""
        seen = self.items.get(item)
        return seen is not None and seen.first < before
