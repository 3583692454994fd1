"""LanceDB: a search is built step by step and runs when its rows are asked for; that is the retrieval."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from resweep.record.adapters.base import Adapter, Facts, get, present
from resweep.record.attributes import class_attribute
from resweep.record.objects import replace_methods, watch_of
from resweep.record.watching import Site, Watch, as_depth
from resweep.record.wrap import wrap

DEFAULT_K = 10  # limit of a query
_BUILDING = ("search", "query", "vector_search")
_RUNNING = ("to_list", "to_arrow", "to_pandas", "to_polars", "to_pydantic", "to_df")


class LanceDb(Adapter):
    """Adapter for lancedb's tables, sync and async."""

    framework = "lancedb"

    def fits(self, obj: Any) -> bool:
        """Whether this is a table."""
        return "Table" in type(obj).__name__

    def methods(self, obj: Any) -> list[str]:
        """Return what a search begins with."""
        return [name for name in _BUILDING if callable(getattr(type(obj), name, None))]

    def facts(self, obj: Any) -> Facts:
        """Name of the table."""
        name = get(obj, "name") or get(obj, "_name") or getattr(obj, "name", None)
        return Facts(
            present({"framework": self.framework, "collection": name if isinstance(name, str) else None})
        )

    def install(self, obj: Any, names: Iterable[str], watch: Watch) -> Any:
        """Hand out searches whose running methods record."""
        wrappers = {name: _building(class_attribute(type(obj), name), watch) for name in names}
        watched = replace_methods(obj, wrappers, {"__resweep_watch__": watch}, watch.undo)
        return obj if watched is None else watched


class _Search(Site):
    """A running method of a search: its first argument is the search, which knows what was asked."""

    __slots__ = ()

    def asked_by(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> int | None:
        """The limit that was set, else LanceDB's own."""
        asked = as_depth(get(args[0], "_limit")) if args else None
        return asked if asked is not None else self.watch.asked or DEFAULT_K

    def query_of(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> object:
        """The vector or text that was searched for."""
        return get(args[0], "_resweep_query") if args else None


def _building(function: Any, watch: Watch) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(function):

        async def begun_async(self: Any, *args: Any, **kwargs: Any) -> Any:
            return _watched(await function(self, *args, **kwargs), _first(args, kwargs), watch)

        return begun_async

    def begun(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _watched(function(self, *args, **kwargs), _first(args, kwargs), watch)

    return begun


def _first(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    return args[0] if args else kwargs.get("query", kwargs.get("query_vector"))


def _watched(search: Any, query: Any, watch: Watch) -> Any:
    """A search with recording methods; what cannot be changed is handed out as it is."""
    if not watch.on or watch_of(search) is not None:
        return search
    wrappers = {}
    for name in _RUNNING:
        function = class_attribute(type(search), name)
        if inspect.isfunction(function):
            wrappers[name] = wrap(function, _Search(watch, function))
    try:
        search._resweep_query = query
        replace_methods(search, wrappers, {"__resweep_watch__": watch}, [])
    except Exception:  # noqa: BLE001 - a search that cannot be changed is still a search
        return search
    return search


ADAPTER = LanceDb()
