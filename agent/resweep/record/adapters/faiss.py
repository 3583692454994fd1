"""FAISS: `search(x, k)` over rows of vectors, one retrieval a row; -1 stands for nothing found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from resweep.record.adapters.base import Adapter, Facts, Splitter, present

_INNER_PRODUCT = 0  # METRIC_INNER_PRODUCT
_METRICS = {_INNER_PRODUCT: "inner_product", 1: "l2"}


class Faiss(Adapter):
    """Adapter for faiss.Index and those derived from it."""

    framework = "faiss"

    def fits(self, obj: Any) -> bool:
        """Whether this is an index."""
        return hasattr(obj, "ntotal") and hasattr(obj, "search")

    def methods(self, obj: Any) -> list[str]:
        """Only `search` retrieves."""
        return ["search"]

    def facts(self, obj: Any) -> Facts:
        """Vector size, metric and number of vectors."""
        observed = {
            "framework": self.framework,
            "dimensions": int(obj.d),
            "metric": _METRICS.get(int(obj.metric_type)),
            "count": int(obj.ntotal),
        }
        return Facts(present(observed))

    def splitter(self) -> Splitter:
        """Return what gives each row of vectors its own row of the answer."""
        return _split


def _split(args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> list[tuple[Any, Any]]:
    scores, rows = result[0], result[1]
    vectors = args[0] if args else kwargs.get("x")
    pairs = []
    for at in range(len(rows)):
        found = [
            (int(row), float(score)) for row, score in zip(rows[at], scores[at], strict=True) if row >= 0
        ]
        passages = [{"id": row, "score": score} for row, score in found]
        pairs.append((None if vectors is None else vectors[at], passages))
    return pairs


ADAPTER = Faiss()
