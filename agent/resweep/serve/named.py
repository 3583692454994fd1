"""`module:object`: a user's retriever by its name, as `init` and `doctor` are given it."""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import resweep
from resweep.domain.batch import ConfigRecord
from resweep.domain.errors import UsageError
from resweep.domain.event import RetrievalEvent
from resweep.testing import MemorySink, capture

ASKS = ("invoke", "retrieve", "search", "query", "run")


def load_object(name: str) -> Any:
    """Return what `module:object` names, looked for from the current folder on.

    A class, or a function that takes no argument and is named like a maker, is called. Raises UsageError.
    """
    module_name, colon, path = name.partition(":")
    if not colon or not module_name or not path:
        raise UsageError(f"expected MODULE:OBJECT, as app.rag:retriever; got {name!r}")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as error:
        raise UsageError(f"{name}: cannot import {module_name}: {type(error).__name__}: {error}") from error
    for part in path.split("."):
        if not hasattr(found, part):
            raise UsageError(f"{name}: {module_name} has no {path}; {_nearest(found, part)}")
        found = getattr(found, part)
    return found() if isinstance(found, type) or _makes(found) else found


def _makes(found: Any) -> bool:
    name = getattr(found, "__name__", "")
    return callable(found) and name.startswith(("make_", "create_", "build_", "get_"))


def _nearest(found: Any, part: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(part, [n for n in dir(found) if not n.startswith("_")], n=1)
    return f"did you mean {near[0]}?" if near else "check the name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a retriever showed: its config as introspected, and the event of one question."""

    config: ConfigRecord
    event: RetrievalEvent | None = None
    error: str | None = None
    answer: object = None


def look(retriever: Any, question: str | None = None) -> Seen:
    """Return what recording sees of a retriever, and of its answer to a question. Nothing is kept."""
    with _quiet(), capture() as sink:
        watched = resweep.watch(retriever, pipeline="doctor", sink=sink, capture="text")
        try:
            answer, error = (None, None) if question is None else _ask(watched, question)
            return Seen(config=_config(sink, retriever), event=_event(sink), error=error, answer=answer)
        finally:
            resweep.unwatch(watched)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the advice back that `watch` gives to a service."""
    log = logging.getLogger("resweep")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)


def _ask(watched: Any, question: str) -> tuple[object, str | None]:
    """Ask as the object wants to be asked; an exception of the retriever's is told, not raised."""
    ask = next(
        (
            getattr(watched, n)
            for n in ("invoke", "retrieve", "search", "query", "run")
            if hasattr(watched, n)
        ),
        watched,
    )
    try:
        return _settled(ask(question)), None
    except Exception as error:  # noqa: BLE001  (a user's code may raise anything)
        return None, f"{type(error).__name__}: {error}"


def _settled(answer: Any) -> object:
    """Run a coroutine, and read a generator to its end."""
    import asyncio
    import inspect

    if inspect.isawaitable(answer):
        return asyncio.run(_awaited(answer))
    if inspect.isasyncgen(answer):
        return asyncio.run(_collected(answer))
    return list(answer) if inspect.isgenerator(answer) else answer


async def _awaited(answer: Any) -> object:
    return await answer


async def _collected(answer: Any) -> list[object]:
    return [part async for part in answer]


def _config(sink: MemorySink, retriever: Any) -> ConfigRecord:
    if not sink.configs:
        raise UsageError(
            f"expected something that retrieves; got {type(retriever).__qualname__}: name a function, or an "
            "object with a method invoke, retrieve or search"
        )
    return sink.configs[-1]


def _event(sink: MemorySink) -> RetrievalEvent | None:
    return sink.events[-1] if sink.events else None
