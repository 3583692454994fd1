"""Near-equal questions: the same words but for a filler or their order.

Questions are sets of words and pairs of words. MinHash (Broder, "On the resemblance and containment of
documents", 1997) with banded look-up finds candidates; the Jaccard similarity itself decides, and numbers
must agree: "error 500" is not "error 502".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import pairwise

from datasketch import MinHash, MinHashLSH

from resweep.domain.sample import normalised

ALIKE = 0.8  # Jaccard similarity from which two questions are near-equal
PERMUTATIONS = 64
BANDS = (16, 4)  # bands and rows: of pairs at 0.8 one in 5,000 is missed
_SHORTEST = 4  # words; below it a single word is the whole difference


class Nearby:
    """The questions of one pipeline, by key."""

    def __init__(self, questions: Iterable[tuple[str, str, str]] = ()) -> None:
        self._words: dict[str, tuple[frozenset[str], str]] = {}
        self._index = MinHashLSH(num_perm=PERMUTATIONS, params=BANDS)
        for key, query, scope in questions:
            self.add(key, query, scope)

    def __len__(self) -> int:
        return len(self._words)

    def __contains__(self, key: str) -> bool:
        return key in self._words

    def add(self, key: str, query: str, scope: str = "") -> None:
        """Add a question; one that is there stays as it is. `scope` is its filter values as text."""
        if key in self._words:
            return
        words = features(query)
        self._words[key] = (words, _bound(query, scope))
        if words:
            self._index.insert(key, signature(words), check_duplication=False)

    def remove(self, key: str) -> None:
        """Forget a question."""
        if self._words.pop(key, (frozenset(), ""))[0]:
            self._index.remove(key)

    def like(self, query: str, scope: str = "") -> list[str]:
        """Return the keys of near-equal questions, the nearest first; equal ones included."""
        words, bound = features(query), _bound(query, scope)
        if not words:
            return []
        found = [(self._similarity(key, words, bound), key) for key in self._index.query(signature(words))]
        return [key for similarity, key in sorted(found, key=lambda f: (-f[0], f[1])) if similarity >= ALIKE]

    def _similarity(self, key: str, words: frozenset[str], bound: str) -> float:
        other, other_bound = self._words[key]
        return len(words & other) / len(words | other) if bound == other_bound else 0.0


def features(query: str) -> frozenset[str]:
    """Return the words and pairs of words of a question; nothing for one too short to compare."""
    words = [word.strip(_MARKS) for word in normalised(query).split()]
    words = [word for word in words if word]
    if len(words) < _SHORTEST:
        return frozenset()
    return frozenset(words) | {f"{a} {b}" for a, b in pairwise(words)}


_MARKS = "\"'`()[]{}<>.,;:!?…。？！"


def _bound(query: str, scope: str) -> str:
    """Return what near-equal questions must have in common: their numbers and their filter values."""
    return "\x00".join([*_numbers(query), scope])


def _numbers(query: str) -> Iterator[str]:
    for word in sorted(query.casefold().split()):
        if any(letter.isdigit() for letter in word):
            yield word.strip(_MARKS)


def signature(words: frozenset[str]) -> MinHash:
    """Return the MinHash of a set of words; equal in every process."""
    found: MinHash = MinHash(num_perm=PERMUTATIONS, hashfunc=_hash)
    found.update_batch(sorted(word.encode("utf-8", "surrogatepass") for word in words))
    return found


def _hash(word: bytes) -> int:
    return int.from_bytes(blake2b(word, digest_size=4).digest(), "big")
