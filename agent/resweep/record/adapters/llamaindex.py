"""LlamaIndex: retrievers, and query engines with their node postprocessors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from resweep.record.adapters.base import (
    Adapter,
    Facts,
    embedder_facts,
    get,
    index_facts,
    present,
    static_filters,
)
from resweep.record.adapters.taps import stage, tap
from resweep.record.stages import RERANK, RETRIEVE
from resweep.record.watching import Watch, as_depth

DEFAULT_K = 2  # DEFAULT_SIMILARITY_TOP_K of llama_index.core.constants
_DEPTHS = ("_similarity_top_k", "similarity_top_k", "_top_k", "top_k")
_RETRIEVING = ("retrieve", "aretrieve")
_ASKING = ("query", "aquery")


class LlamaIndex(Adapter):
    """Adapter for LlamaIndex's retrievers and query engines."""

    framework = "llamaindex"

    def methods(self, obj: Any) -> list[str]:
        """A retriever is asked by retrieve, an engine by query: its answer carries its source nodes."""
        names = _ASKING if _retriever(obj) is not None else _RETRIEVING
        return [name for name in names if callable(getattr(type(obj), name, None))] or super().methods(obj)

    def facts(self, obj: Any) -> Facts:
        """Depth of the retriever, or of the last postprocessor that cuts; model and index it was built on."""
        inner = _retriever(obj) or obj
        candidates = _depth(inner)
        cut = next((d for one in reversed(_postprocessors(obj)) if (d := as_depth(get(one, "top_n")))), None)
        depth = cut if cut is not None else candidates
        observed = {
            "framework": self.framework,
            "k": depth,
            **embedder_facts(inner),
            **index_facts(inner),
        }
        default = DEFAULT_K if depth == DEFAULT_K and cut is None else None
        return Facts(present(observed), depth, default, candidates if cut else None, static_filters(inner))

    def tap(self, obj: Any, watch: Watch) -> None:
        """Retrieving and postprocessing inside an engine."""
        inner = _retriever(obj)
        if inner is not None:
            tap(inner, dict.fromkeys(_RETRIEVING, stage(RETRIEVE)), watch)
        reranking = stage(RERANK, lambda args, kwargs: args[0] if args else kwargs.get("nodes"))
        for one in _postprocessors(obj):
            tap(one, dict.fromkeys(("postprocess_nodes", "apostprocess_nodes"), reranking), watch)

    def extractor(self, obj: Any) -> Callable[[Any], Any] | None:
        """An engine's answer carries the nodes it was made of."""
        return _source_nodes if _retriever(obj) is not None else None


def _source_nodes(result: Any) -> Any:
    return getattr(result, "source_nodes", result)


def _retriever(obj: Any) -> Any:
    return get(obj, "_retriever")


def _postprocessors(obj: Any) -> list[Any]:
    found = get(obj, "_node_postprocessors")
    return list(found) if isinstance(found, list | tuple) else []


def _depth(obj: Any) -> int | None:
    return next((depth for name in _DEPTHS if (depth := as_depth(get(obj, name))) is not None), None)


ADAPTER = LlamaIndex()
