"""Qdrant's client, sync and async: query_points, its batch, and the older search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from resweep.record.adapters.base import Adapter, Facts, Splitter

# `retrieve` and `scroll` fetch points by id: no retrieval in the sense of a pipeline.
_METHODS = ("query_points", "query_batch_points", "search", "search_batch", "query", "query_batch")


class Qdrant(Adapter):
    """Adapter for QdrantClient and AsyncQdrantClient."""

    framework = "qdrant"

    def methods(self, obj: Any) -> list[str]:
        """Return the searches this version of the client has."""
        return [name for name in _METHODS if callable(getattr(type(obj), name, None))]

    def facts(self, obj: Any) -> Facts:
        """A client serves many collections: what it says holds for none of them."""
        return Facts({"framework": self.framework})

    def splitter(self) -> Splitter:
        """A batch asks many questions at once."""
        return _split


def _split(args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> list[tuple[Any, Any]]:
    requests = kwargs.get("requests") or next((one for one in args if isinstance(one, list | tuple)), None)
    if _is_batch(requests, result):
        return [
            (getattr(asked, "query", None), one) for asked, one in zip(requests or (), result, strict=True)
        ]
    return [(_query(args, kwargs), result)]


def _is_batch(requests: Any, result: Any) -> bool:
    """Whether a list of requests met a list of answers, one each."""
    if not isinstance(result, list) or not isinstance(requests, list | tuple) or len(result) != len(requests):
        return False
    if any(isinstance(one, int | float) for one in requests):  # one vector
        return False
    return all(hasattr(one, "points") or isinstance(one, list) for one in result)


def _query(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    for name in ("query", "query_vector", "query_text"):
        if name in kwargs:
            return kwargs[name]
    return args[1] if len(args) > 1 else None


ADAPTER = Qdrant()
