"""Haystack: retriever components, and pipelines whose components are the stages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
from resweep.record.adapters.taps import Note, stage, tap
from resweep.record.stages import RERANK, RETRIEVE
from resweep.record.watching import Watch, as_depth

DEFAULT_K = 10  # top_k of every retriever component
_RUNNING = ("run", "run_async")


class Haystack(Adapter):
    """Adapter for Haystack's components and pipelines."""

    framework = "haystack"

    def methods(self, obj: Any) -> list[str]:
        """Components and pipelines are run."""
        return [name for name in _RUNNING if callable(getattr(type(obj), name, None))]

    def facts(self, obj: Any) -> Facts:
        """Depth of the component, or of the last ranker or retriever of a pipeline."""
        parts = _components(obj)
        retrievers = [part for part in parts if _is(part, "Retriever")] or ([] if parts else [obj])
        last = next((part for part in reversed(parts) if _is(part, "Ranker")), None)
        depth = as_depth(get(last if last is not None else next(iter(retrievers), None), "top_k"))
        first = next(iter(retrievers), obj)
        embedder = next((part for part in parts if _is(part, "Embedder")), None)
        observed = {
            "framework": self.framework,
            "k": depth,
            **embedder_facts(first),
            "model": get(embedder, "model") or embedder_facts(first).get("model"),
            **index_facts(first),
        }
        default = DEFAULT_K if depth == DEFAULT_K else None
        candidates = as_depth(get(first, "top_k")) if last is not None else None
        return Facts(present(observed), depth, default, candidates, static_filters(first))

    def tap(self, obj: Any, watch: Watch) -> None:
        """Retrievers and rankers of a pipeline."""
        for part in _components(obj):
            note: Note | None = None
            if _is(part, "Retriever"):
                note = stage(RETRIEVE)
            elif _is(part, "Ranker"):
                note = stage(
                    RERANK, lambda args, kwargs: kwargs.get("documents") or (args[0] if args else None)
                )
            if note is not None:
                tap(part, dict.fromkeys(_RUNNING, note), watch)

    def extractor(self, obj: Any) -> Callable[[Any], Any] | None:
        """A pipeline answers with the outputs of its last components, by their names."""
        return _documents if _components(obj) else None


def _ranked(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return kwargs.get("documents") or (args[0] if args else None)


def _documents(result: Any) -> Any:
    if not isinstance(result, Mapping):
        return result
    outputs = [part for part in result.values() if isinstance(part, Mapping) and "documents" in part]
    return outputs[-1]["documents"] if outputs else []


def _components(obj: Any) -> list[Any]:
    """The components of a pipeline in the order in which they were added; empty for a component."""
    graph = get(obj, "graph")
    nodes = getattr(graph, "nodes", None)
    if nodes is None:
        return []
    return [nodes[name]["instance"] for name in nodes]


def _is(part: Any, what: str) -> bool:
    name = type(part).__name__
    return name.endswith(what) or (what == "Ranker" and "Ranker" in name)


ADAPTER = Haystack()
