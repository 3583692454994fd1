"""What an adapter tells of a retriever; this one knows only what names usually mean."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from resweep.domain.values import clean
from resweep.record.asking import conditions
from resweep.record.attributes import class_attribute
from resweep.record.objects import watch_methods
from resweep.record.watching import as_depth

if TYPE_CHECKING:
    from resweep.record.watching import Watch

_SINGLE = (
    "invoke",
    "ainvoke",
    "retrieve",
    "aretrieve",
    "get_relevant_documents",
    "aget_relevant_documents",
    "search",
    "asearch",
    "query",
    "aquery",
    "run",
    "arun",
    "run_async",
    "__call__",
)
_PREFIXES = (
    "similarity_search",
    "asimilarity_search",
    "max_marginal_relevance_search",
    "amax_marginal_relevance_search",
)
_DEPTHS = ("k", "top_k", "similarity_top_k", "n_results", "num_results", "limit", "top_n")
EMBEDDERS = (
    "embedder",
    "embeddings",
    "embedding",
    "embed_model",
    "_embed_model",
    "embedding_model",
    "embedding_function",
    "_embedding_function",
    "encoder",
)
_MODELS = ("model", "model_name", "model_id", "deployment", "name_or_path")
_DIMENSIONS = ("dimensions", "dimension", "dim", "embedding_dim", "output_dimensionality")
_COLLECTIONS = ("collection_name", "_collection_name", "index_name", "table_name", "collection")
_METRICS = ("metric", "distance_metric", "distance_strategy", "similarity", "metric_type")
INDEXES = ("vectorstore", "vector_store", "_vector_store", "index", "store", "document_store", "client")


# Arguments and answer of a call into (question, answer) pairs, one for each question it asked.
Splitter = Callable[[tuple[Any, ...], Mapping[str, Any], Any], list[tuple[Any, Any]]]


@dataclass(frozen=True, slots=True)
class Facts:
    """What a live retriever says of itself.

    `observed` may hold framework, k, model, dimensions, metric, collection and count. `asked` is the depth
    of calls that name none; `default_k` is set where that is only the framework's default.
    """

    observed: dict[str, object] = field(default_factory=dict)
    asked: int | None = None
    default_k: int | None = None
    candidate_k: int | None = None
    filters: Mapping[str, object] | None = None


class Adapter:
    """The adapter for anything without one of its own."""

    framework = ""

    def fits(self, obj: Any) -> bool:
        """Whether this object is one that the adapter knows."""
        return True

    def methods(self, obj: Any) -> list[str]:
        """Return the names of the methods that retrieve."""
        return [name for name in _public(obj) if name in _SINGLE or name.startswith(_PREFIXES)]

    def facts(self, obj: Any) -> Facts:
        """Return what the live object says of itself, without a call that could cost or wait."""
        depth = depth_of(obj)
        observed = {"framework": self.framework, "k": depth, **embedder_facts(obj), **index_facts(obj)}
        return Facts(present(observed), depth, None, None, static_filters(obj))

    def tap(self, obj: Any, watch: Watch) -> None:
        """Look at the stages inside the object."""

    def extractor(self, obj: Any) -> Callable[[Any], Any] | None:
        """Return what finds the passages in an answer of this object; None where they lie open."""
        return None

    def install(self, obj: Any, names: Iterable[str], watch: Watch) -> Any:
        """Make these methods of an object recording; return the object, or a proxy of one that cannot be."""
        return watch_methods(obj, names, watch)

    def splitter(self) -> Splitter | None:
        """Return what splits a call that asks many questions at once; None where a call asks one."""
        return None


def _public(obj: Any) -> Iterator[str]:
    """Names of methods: of the class, and of functions that the object carries itself."""
    kind = type(obj)
    for name in dict.fromkeys((*_SINGLE, *(n for n in dir(kind) if n.startswith(_PREFIXES)))):
        found = getattr(obj, "__dict__", {}).get(name)
        if callable(found) or (class_attribute(kind, name) is not None and callable(getattr(kind, name))):
            yield name


def depth_of(obj: Any) -> int | None:
    """Return the depth that an object is set to."""
    settings = _get(obj, "search_kwargs")
    if isinstance(settings, Mapping):
        for name in _DEPTHS:
            if (depth := as_depth(settings.get(name))) is not None:
                return depth
    return next((d for name in _DEPTHS if (d := as_depth(_get(obj, name))) is not None), None)


def static_filters(obj: Any) -> dict[str, object] | None:
    """Return the filters that hold for every call of an object."""
    settings = _get(obj, "search_kwargs")
    filters = settings.get("filter") if isinstance(settings, Mapping) else None
    filters = filters or _get(obj, "filters") or _get(obj, "_filters")
    usable = isinstance(filters, Mapping) or hasattr(filters, "filters")
    return (conditions(filters) or None) if usable else None


def embedder_facts(obj: Any) -> dict[str, object]:
    """Return model and vector size of the embedder that an object holds, directly or in its index."""
    for holder in (obj, *(_get(obj, name) for name in INDEXES)):
        for name in EMBEDDERS:
            embedder = _get(holder, name)
            if embedder is None or (callable(embedder) and not _named(embedder)):
                continue
            return {"model": _named(embedder), "dimensions": _number(embedder, _DIMENSIONS)}
    return {}


def _named(embedder: Any) -> str | None:
    if isinstance(embedder, str):
        return clean(embedder, 128)
    return next((clean(v, 128) for name in _MODELS if isinstance(v := _get(embedder, name), str) and v), None)


def index_facts(obj: Any) -> dict[str, object]:
    """Return collection and metric of the index that an object holds or is."""
    found: dict[str, object] = {}
    for holder in (obj, *(_get(obj, name) for name in INDEXES)):
        for fact, names in (("collection", _COLLECTIONS), ("metric", _METRICS)):
            if fact not in found and (text := _text(holder, names)):
                found[fact] = text
    return found


def _text(holder: Any, names: tuple[str, ...]) -> str | None:
    for name in names:
        value = _get(holder, name)
        value = getattr(value, "value", value)  # an enum
        value = value if isinstance(value, str) else _get(value, "name")
        if isinstance(value, str) and value:
            return clean(value, 128)
    return None


def _number(holder: Any, names: tuple[str, ...]) -> int | None:
    return next((n for name in names if (n := as_depth(_get(holder, name))) is not None), None)


def present(facts: Mapping[str, object]) -> dict[str, object]:
    """Return the facts that are known."""
    return {name: value for name, value in facts.items() if value not in (None, "")}


def _get(obj: Any, name: str) -> Any:
    """An attribute that is there already: nothing computed, nothing fetched, nothing raised."""
    if obj is None:
        return None
    try:
        found = inspect.getattr_static(obj, name, None)
        if found is None or isinstance(found, property) or inspect.isroutine(found):
            return None
        return getattr(obj, name, None)
    except Exception:  # noqa: BLE001 - an object may do anything when looked at
        return None


get = _get
