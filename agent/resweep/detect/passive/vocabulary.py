"""Which passages, sources and words this pipeline has shown, since when, and with how many tokens."""

from __future__ import annotations

import msgspec


class Seen(msgspec.Struct, gc=False):
    """One passage, source or word: unix times of first and last sight, and what it looked like last."""

    first: float
    last: float
    source: int = 0
    tokens: int = 0
    count: int = 1


class Vocabulary:
    """A bounded memory of hashes; the oldest entries go first."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.items: dict[int, Seen] = {}

    def add(self, ts: float, item: int, source: int = 0, tokens: int = 0) -> Seen | None:
        """Note one sight and return what was known before, None for something new."""
        seen = self.items.get(item)
        if seen is None:
            if len(self.items) >= self.size:
                self._evict()
            self.items[item] = Seen(ts, ts, source, tokens)
            return None
        seen.last = ts
        seen.count += 1
        return seen

    def _evict(self) -> None:
        kept = sorted(self.items.items(), key=lambda pair: -pair[1].last)[: self.size * 3 // 4]
        self.items = dict(sorted(kept, key=lambda pair: pair[1].first))

    def known(self, item: int, before: float) -> bool:
        """Whether something was seen before a time."""
        seen = self.items.get(item)
        return seen is not None and seen.first < before
