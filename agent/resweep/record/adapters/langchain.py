"""LangChain: retrievers, vector stores, and what stands inside compression and ensemble retrievers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from resweep.record.adapters.base import (
    Adapter,
    Facts,
    depth_of,
    embedder_facts,
    get,
    index_facts,
    present,
    static_filters,
)
from resweep.record.adapters.taps import Note, scored, stage, tap
from resweep.record.stages import RERANK, RETRIEVE
from resweep.record.watching import Watch, as_depth

DEFAULT_K = 4  # of every vector store's similarity_search
_RETRIEVING = ("invoke", "ainvoke", "get_relevant_documents", "aget_relevant_documents")
_STREAMING = ("stream", "astream")
_SEARCHING = ("search", "asearch")
_SEARCHES = ("similarity_search", "asimilarity_search", "max_marginal", "amax_marginal")
_SCORED = (
    "similarity_search_with_score",
    "asimilarity_search_with_score",
    "similarity_search_with_score_by_vector",
    "similarity_search_with_relevance_scores",
    "asimilarity_search_with_relevance_scores",
    "_similarity_search_with_score_by_vector",
)


class LangChain(Adapter):
    """Adapter for LangChain's retrievers, vector stores and chains that retrieve."""

    framework = "langchain"

    def methods(self, obj: Any) -> list[str]:
        """A retriever's batch and stream call its invoke, a vector store's retrievers call its searches."""
        kind = type(obj)
        if _is(obj, "VectorStore"):
            return [n for n in dir(kind) if n in _SEARCHING or n.startswith(_SEARCHES)]
        names = _RETRIEVING if _is(obj, "BaseRetriever") else (*_RETRIEVING, *_STREAMING)
        found = [name for name in names if callable(getattr(kind, name, None))]
        return found or super().methods(obj)

    def facts(self, obj: Any) -> Facts:
        """Depth from `search_kwargs`, the compressor or the retrievers inside; the rest from the store."""
        depth = _depth(obj)
        default = DEFAULT_K if depth is None and _searches_plainly(obj) else None
        base = get(obj, "base_retriever")
        inner = base if base is not None else obj
        observed = {
            "framework": self.framework,
            "k": depth or default,
            **embedder_facts(inner),
            **index_facts(inner),
            "count": _count(inner),
            "search_type": get(obj, "search_type"),
        }
        candidates = None if base is None else _depth(base)
        return Facts(present(observed), depth or default, default, candidates, static_filters(inner))

    def tap(self, obj: Any, watch: Watch) -> None:
        """Two stages of a compression retriever; the retrievers of an ensemble; the scores of a store."""
        base, compressor = get(obj, "base_retriever"), get(obj, "base_compressor")
        retrieving: dict[str, Note] = dict.fromkeys(("invoke", "ainvoke"), stage(RETRIEVE))
        if base is not None:
            tap(base, retrieving, watch)
            self._tap_store(base, watch)
        if compressor is not None:
            reranking = stage(RERANK, _documents)
            tap(compressor, dict.fromkeys(("compress_documents", "acompress_documents"), reranking), watch)
        for inner in _inner(obj):
            tap(inner, retrieving, watch)
        self._tap_store(obj, watch)

    def _tap_store(self, obj: Any, watch: Watch) -> None:
        store = get(obj, "vectorstore")
        if store is not None:
            tap(store, dict.fromkeys(_SCORED, scored), watch)
        elif _is(obj, "VectorStore"):
            tap(obj, dict.fromkeys(_SCORED, scored), watch)


def _is(obj: Any, name: str) -> bool:
    return any(kind.__name__ == name for kind in type(obj).__mro__)


def _inner(obj: Any) -> list[Any]:
    retrievers = get(obj, "retrievers")
    return list(retrievers) if isinstance(retrievers, list | tuple) else []


def _depth(obj: Any) -> int | None:
    compressor = get(obj, "base_compressor")
    top = as_depth(get(compressor, "top_n")) or as_depth(get(compressor, "top_k"))
    if top is not None:
        return top
    base = get(obj, "base_retriever")
    return depth_of(obj) if base is None else depth_of(base) or _default(base)


def _default(obj: Any) -> int | None:
    return DEFAULT_K if _searches_plainly(obj) else None


def _searches_plainly(obj: Any) -> bool:
    return isinstance(get(obj, "search_kwargs"), Mapping) and get(obj, "vectorstore") is not None


def _documents(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return args[0] if args else kwargs.get("documents")


def _count(obj: Any) -> int | None:
    """How many passages a store in memory holds; others would have to be asked over the network."""
    store = get(obj, "vectorstore") or obj
    held = get(store, "store")
    if isinstance(held, Mapping):
        return len(held)
    total = getattr(get(store, "index"), "ntotal", None)
    return total if isinstance(total, int) else None


ADAPTER = LangChain()
