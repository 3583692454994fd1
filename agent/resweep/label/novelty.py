"""How far a question is from every question of the labelled set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Vectors = np.typing.NDArray[np.float64]
Embedder = Callable[[Sequence[str]], Sequence[Sequence[float]]]

LEAST = 20  # questions in the set before anything can be far from it
MOST = 20_000  # questions of the set that are compared with: the latest
_BLOCK = 512


class Novelty:
    """Distances to a set of questions: 1 - the cosine to the nearest, in [0, 1] for tf-idf.

    The vectors are tf-idf of words and pairs of words, or those of the user's own `embed`.
    """

    def __init__(self, known: Sequence[str], embed: Embedder | None = None) -> None:
        self._embed = embed
        self._words: Any = None
        self._known = self._fit(list(known)[-MOST:]) if len(known) >= LEAST else None

    @property
    def ready(self) -> bool:
        """Whether the set is large enough to say what is far from it."""
        return self._known is not None

    def distances(self, queries: Sequence[str]) -> Vectors:
        """Return the distance of each question to the nearest of the set; 0 while it is not ready."""
        if self._known is None or not queries:
            return np.zeros(len(queries))
        return np.concatenate(
            [self._nearest(list(queries[at : at + _BLOCK])) for at in range(0, len(queries), _BLOCK)]
        )

    def _nearest(self, queries: list[str]) -> Vectors:
        cosines = self._vectors(queries) @ self._known.T  # type: ignore[union-attr]
        best = cosines.max(axis=1)
        dense = best.toarray().ravel() if hasattr(best, "toarray") else np.asarray(best).ravel()
        distances: Vectors = np.clip(1.0 - dense, 0.0, 2.0)
        return distances

    def _fit(self, known: list[str]) -> Vectors | None:
        if self._embed is not None:
            return self._unit(known)
        from sklearn.feature_extraction.text import TfidfVectorizer  # takes a second to load

        self._words = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2))
        try:
            vectors: Vectors = self._words.fit_transform(known)
        except ValueError:  # not one word in all of them
            return None
        return vectors

    def _vectors(self, queries: list[str]) -> Vectors:
        if self._embed is not None:
            return self._unit(queries)
        vectors: Vectors = self._words.transform(queries)
        return vectors

    def _unit(self, queries: list[str]) -> Vectors:
        assert self._embed is not None
        vectors = np.asarray(self._embed(queries), dtype=np.float64)
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit: Vectors = np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)
        return unit
