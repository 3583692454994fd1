"""Calling a watched retriever again, out of band: canaries and probes.

Such a call is nobody's request. It runs with every watch of the process held off, so that nothing of it
enters a window, a sample or a measure.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextvars import copy_context
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from resweep.record.call import Call, current
from resweep.record.passages import HITS_MAX
from resweep.record.watching import DEPTHS, QUERIES, Watch, as_depth

T = TypeVar("T")
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Way(NamedTuple):
    """How a function is asked: where its question and its depth go. `depth` is None where it takes none."""

    query: str | None
    depth: str | None
    open: bool  # takes any keyword


def off_record(watches: Iterable[Watch], function: Callable[[], T]) -> T:
    """Return what a function returns, with the given watches recording nothing of it.

    Each is made to look busy: a call inside another call of the same watch is part of that one.
    """
    busy = _busy(watches)

    def run() -> T:
        current.set(busy)
        return function()

    return copy_context().run(run)


def _busy(watches: Iterable[Watch]) -> Call | None:
    node: Call | None = None
    for watch in watches:
        if watch.sites:
            call = Call()
            call.site, call.number, call.args, call.kwargs, call.t0 = watch.sites[0], 0, (), {}, 0.0
            call.parent = node
            node = call
    return node


def complete(result: Any) -> Any:
    """Return a result that is all there: coroutines awaited, iterators read to their end."""
    if inspect.iscoroutine(result) or isinstance(result, asyncio.Future):
        result = asyncio.run(_awaited(result))
    if isinstance(result, AsyncIterator):
        return asyncio.run(_collected(result))
    if isinstance(result, Iterator) and not hasattr(result, "page_content"):
        return list(islice(result, HITS_MAX))
    return result.result() if hasattr(result, "add_done_callback") and hasattr(result, "result") else result


async def _awaited(result: Any) -> Any:
    return await result


async def _collected(result: AsyncIterator[Any]) -> list[Any]:
    found: list[Any] = []
    async for item in result:
        found.append(item)
        if len(found) >= HITS_MAX:
            break
    return found


def way_of(function: Callable[..., Any]) -> Way:
    """Return how a function (bound, so without its object) is asked."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):
        return Way(None, None, False)
    names = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    by_keyword = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
    query = next((name for name in names if name in QUERIES), None)
    first = names[0] if names else None
    if query == first and first not in by_keyword:
        query = None  # goes first, whatever it is called
    return Way(
        query,
        next((name for name in names if name in DEPTHS), None),
        any(p.kind is p.VAR_KEYWORD for p in parameters),
    )


def ask(function: Callable[..., Any], query: str, kwargs: Mapping[str, Any]) -> Any:
    """Return what a retriever answers to a question."""
    way = way_of(function)
    return function(**{way.query: query}, **kwargs) if way.query else function(query, **kwargs)


def deeper(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], k: int
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Return the arguments of a call made at depth k; None where the function takes no depth."""
    changed = {name: (k if name in DEPTHS and as_depth(value) else value) for name, value in kwargs.items()}
    if changed != dict(kwargs):
        return args, changed
    way = way_of(function)
    if way.depth is not None:
        at = _place(function, way.depth)
        if at is not None and len(args) > at:
            return (*args[:at], k, *args[at + 1 :]), changed
        return args, {**changed, way.depth: k}
    return (args, {**changed, "k": k}) if way.open and _passes_k(function) else None


def _place(function: Callable[..., Any], name: str) -> int | None:
    parameters = inspect.signature(function).parameters
    kinds = [p.kind for p in parameters.values()]
    at = list(parameters).index(name)
    return at if kinds[at] in _POSITIONAL else None


def _passes_k(function: Callable[..., Any]) -> bool:
    """Whether keywords go through to a search that takes `k`, as with LangChain's retrievers."""
    owner = getattr(function, "__self__", None)
    return any(kind.__name__ == "BaseRetriever" for kind in type(owner).__mro__)
