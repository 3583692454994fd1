"""A look at the stages inside a watched retriever: how long, how many in, what came out.

A tap records only while the retriever it was set for runs, and nothing of its own.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from resweep.record.call import Call, clock, extra_of, running
from resweep.record.objects import replace_methods
from resweep.record.stages import Stage
from resweep.record.watching import Watch

Note = Callable[[Call, float, tuple[Any, ...], dict[str, Any], Any], None]


def stage(name: str, documents: Callable[[tuple[Any, ...], dict[str, Any]], Any] | None = None) -> Note:
    """Return what notes a stage; `documents` picks the passages it was given out of its arguments."""

    def note(call: Call, seconds: float, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        given = documents(args, kwargs) if documents else None
        taken = len(given) if isinstance(given, list | tuple) else None
        kept = result.copy() if type(result) is list else result
        extra_of(call).stages.append(Stage(name, seconds, taken, kept))

    return note


def scored(call: Call, _: float, __: tuple[Any, ...], ___: dict[str, Any], result: Any) -> None:
    """Keep an inner result for its scores."""
    extra_of(call).scored = result.copy() if type(result) is list else result


def tap(obj: Any, notes: dict[str, Note], watch: Watch) -> None:
    """Note what these methods of an object do while `watch` runs; objects that cannot be changed are left."""
    wrappers = {}
    for name, note in notes.items():
        function = inspect.getattr_static(type(obj), name, None)
        if inspect.isfunction(function) and name not in getattr(obj, "__dict__", {}):
            make = _coroutine if inspect.iscoroutinefunction(function) else _plain
            wrappers[name] = functools.wraps(function)(make(function, note, watch))
    if wrappers:
        replace_methods(obj, wrappers, {}, watch.undo)


def _plain(function: Callable[..., Any], note: Note, watch: Watch) -> Callable[..., Any]:
    def seen(self: Any, *args: Any, **kwargs: Any) -> Any:
        call = running(watch)
        if call is None or id(self) in extra_of(call).inside:
            return function(self, *args, **kwargs)
        with _Inside(call, self) as stage_:
            result = function(self, *args, **kwargs)
        note(call, stage_.seconds, args, kwargs, result)
        return result

    return seen


def _coroutine(function: Callable[..., Any], note: Note, watch: Watch) -> Callable[..., Any]:
    async def seen(self: Any, *args: Any, **kwargs: Any) -> Any:
        call = running(watch)
        if call is None or id(self) in extra_of(call).inside:
            return await function(self, *args, **kwargs)
        with _Inside(call, self) as stage_:
            result = await function(self, *args, **kwargs)
        note(call, stage_.seconds, args, kwargs, result)
        return result

    return seen


class _Inside:
    """Time inside one object: what it calls of itself meanwhile is part of it, no stage of its own."""

    def __init__(self, call: Call, obj: object) -> None:
        self._inside, self._name = extra_of(call).inside, id(obj)
        self.seconds = 0.0

    def __enter__(self) -> _Inside:
        self._inside.add(self._name)
        self._began = clock()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = clock() - self._began
        self._inside.discard(self._name)
