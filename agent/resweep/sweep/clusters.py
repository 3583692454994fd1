"""Clusters of queries by their words: seeded spherical k-means on tf-idf, named by their heaviest words.

Source: Dhillon and Modha, "Concept decompositions for large sparse text data using clustering", Machine
Learning 42 (2001). A labelled set that brings its own clusters is sliced by those instead.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from resweep.domain.measures import FloatArray, IntArray
from resweep.domain.resample import SEED

FEWEST = 60  # queries; below it clusters are noise
_WORDS = 400
_BLOCK = 4000
_ROUNDS = 25
_WORD = re.compile(r"[^\W\d_]{3,}")
NONE = "unknown"


def clusters(queries: Sequence[str | None], seed: int = SEED) -> list[str]:
    """Return a cluster name per query; all `unknown` where fewer than 60 have text."""
    known = [i for i, query in enumerate(queries) if query]
    names = [NONE] * len(queries)
    if len(known) < FEWEST:
        return names
    bags = [Counter(_WORD.findall((queries[i] or "").lower())) for i in known]
    space = _Space(bags)
    if len(space.words) < 2:
        return names
    order = np.random.default_rng(seed).permutation(len(bags))[:_BLOCK]
    centres = _fit(
        space.vectors([bags[i] for i in order]), min(8, max(2, round((len(bags) / 30) ** 0.5))), seed
    )
    titles = [space.title(centre) for centre in centres]
    for start in range(0, len(bags), _BLOCK):
        nearest = np.argmax(space.vectors(bags[start : start + _BLOCK]) @ centres.T, axis=1)
        for i, cluster in zip(known[start : start + _BLOCK], nearest, strict=True):
            names[i] = titles[int(cluster)]
    return names


class _Space:
    """Tf-idf over the commonest words that are neither in a single query nor in more than half of them."""

    def __init__(self, bags: Sequence[Counter[str]]) -> None:
        frequency = Counter(word for bag in bags for word in bag)
        telling = [(word, n) for word, n in frequency.items() if 2 <= n <= len(bags) / 2]
        chosen = sorted(telling, key=lambda pair: (-pair[1], pair[0]))[:_WORDS]
        self.words = [word for word, _ in chosen]
        self.place = {word: i for i, word in enumerate(self.words)}
        self.weight = np.log(len(bags) / np.array([n for _, n in chosen], dtype=np.float64))

    def vectors(self, bags: Sequence[Counter[str]]) -> FloatArray:
        """Return one unit vector per query; zeros for a query without any of the words."""
        counts = np.zeros((len(bags), len(self.words)))
        for row, bag in enumerate(bags):
            for word in bag.keys() & self.place.keys():
                counts[row, self.place[word]] = bag[word]
        return _unit(np.log1p(counts) * self.weight)

    def title(self, centre: FloatArray) -> str:
        """Return the heaviest words of a centre."""
        heaviest = np.argsort(-centre, kind="stable")[:3]
        return " ".join(self.words[int(i)] for i in heaviest if centre[i] > 0) or NONE


def _unit(vectors: FloatArray) -> FloatArray:
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: FloatArray = np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)
    return unit


def _fit(sample: FloatArray, k: int, seed: int) -> FloatArray:
    centres = _first_centres(sample, k, np.random.default_rng(seed))
    before: IntArray = np.full(len(sample), -1)
    for _ in range(_ROUNDS):
        nearest = np.argmax(sample @ centres.T, axis=1)
        if np.array_equal(nearest, before):
            break
        before = nearest
        sums = np.stack([sample[nearest == c].sum(axis=0) for c in range(k)])
        centres = np.where(np.any(sums, axis=1, keepdims=True), _unit(sums), centres)
    return centres


def _first_centres(sample: FloatArray, k: int, rng: np.random.Generator) -> FloatArray:
    """Return k spread-out queries: each next one drawn the likelier the farther it is (k-means++)."""
    chosen = [int(rng.integers(len(sample)))]
    while len(chosen) < k:
        far = np.maximum(1 - (sample @ sample[chosen].T).max(axis=1), 1e-9)
        chosen.append(int(rng.choice(len(sample), p=far / far.sum())))
    return sample[chosen]
