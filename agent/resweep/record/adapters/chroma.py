"""Chroma's collection, sync and async: one call of `query` may ask many questions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from resweep.record.adapters.base import Adapter, Facts, Splitter, get, present

DEFAULT_K = 10  # n_results of Collection.query
_FIELDS = ("ids", "documents", "metadatas", "distances")


class Chroma(Adapter):
    """Adapter for chromadb's Collection and AsyncCollection."""

    framework = "chroma"

    def fits(self, obj: Any) -> bool:
        """Whether this is a collection; a client answers no questions."""
        return "Collection" in type(obj).__name__

    def methods(self, obj: Any) -> list[str]:
        """`get` and `peek` fetch by id: only `query` retrieves."""
        return ["query"]

    def facts(self, obj: Any) -> Facts:
        """Name and metric of the collection."""
        model = get(obj, "_model")
        metadata = getattr(model, "metadata", None) or {}
        observed = {
            "framework": self.framework,
            "collection": getattr(model, "name", None),
            "metric": metadata.get("hnsw:space") if isinstance(metadata, Mapping) else None,
            "dimensions": getattr(model, "dimension", None),
        }
        return Facts(present(observed))

    def splitter(self) -> Splitter:
        """Return what gives each question its own column of the answer."""
        return _split


def _split(args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> list[tuple[Any, Any]]:
    texts = _as_list(kwargs.get("query_texts"))
    asked = (
        texts if texts is not None else _as_list(kwargs.get("query_embeddings", args[0] if args else None))
    )
    ids = result["ids"]
    pairs = []
    for at in range(len(ids)):
        one = {name: column[at] for name in _FIELDS if (column := result.get(name)) is not None}
        query = asked[at] if asked is not None and at < len(asked) else None
        pairs.append((query, one))
    return pairs


def _as_list(queries: Any) -> list[Any] | None:
    """Several questions as a list; one alone is a list of one."""
    if queries is None:
        return None
    if isinstance(queries, str) or (len(queries) and isinstance(queries[0], int | float)):
        return [queries]
    return list(queries)


ADAPTER = Chroma()
