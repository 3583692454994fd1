"""Functions of every kind, wrapped so that nobody can tell but by the count.

A wrapper is of the same kind as what it wraps: plain, coroutine, generator, async generator. It returns what
the function returns and raises what it raises.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator
from typing import Any

from resweep.record.attributes import class_attribute
from resweep.record.call import OVERHEAD_MASK, Call, begin, clock, current, fail, finish, keep
from resweep.record.failure import spare_the_interrupt
from resweep.record.streams import AsyncGeneratorTap, AsyncIteratorTap, IteratorTap, Stream, delegating, relay
from resweep.record.watching import Site

# Results that are told apart without a look inside: they are passages, not something still to come.
_PLAIN = (list, type(None), dict, tuple, str)
Wrapper = Callable[..., Any]


def wrap(function: Callable[..., Any], site: Site, *, bound: int = 0) -> Wrapper:
    """Return a recording twin of a function. `bound` leading arguments are the object it belongs to."""
    make = _KINDS[_kind(function)]
    wrapper = make(function, site, bound)
    try:
        functools.update_wrapper(wrapper, function)
    except Exception:  # noqa: BLE001 - some callables of C refuse to be asked
        wrapper.__wrapped__ = function  # type: ignore[attr-defined]
    wrapper.__resweep_site__ = site  # type: ignore[attr-defined]
    wrapper.__resweep_bound__ = bound  # type: ignore[attr-defined]
    return wrapper


def _kind(function: Any) -> str:
    target = function
    while isinstance(target, functools.partial):
        target = target.func
    if not inspect.isroutine(target) and not inspect.isclass(target):
        target = class_attribute(type(target), "__call__") or target
    if inspect.isasyncgenfunction(target):
        return "async generator"
    if inspect.iscoroutinefunction(target):
        return "coroutine"
    return "generator" if inspect.isgeneratorfunction(target) else "plain"


def _wrap_plain(function: Callable[..., Any], site: Site, bound: int) -> Wrapper:
    """A plain function's twin. What `begin`, `finish` and `keep` do for the usual call is written out.

    The usual call is one outside of any other retrieval that returns a list and finds room in the ring.
    """
    get, set_current, clock_ = current.get, current.set, clock
    ring = site.recorder.ring
    waiting = ring.calls

    def recorded(*args: Any, **kwargs: Any) -> Any:
        last = get()
        if (last is not None and (last.active or last.parent is not None)) or not site.quick:
            begun = begin(site, args[bound:], kwargs)
            if begun is None:
                return function(*args, **kwargs)
            call = begun
        else:
            call = Call()
            call.site = site
            call.args = args[bound:] if bound else args
            call.kwargs = kwargs
            call.number = site.next_number()
            set_current(call)
            call.t0 = clock_()
        try:
            result = function(*args, **kwargs)
        except BaseException as error:
            fail(call, error)
            raise
        if type(result) is not list or call.parent is not None or not call.number & OVERHEAD_MASK:
            return _returned(call, result)
        call.t1 = clock_()
        call.active = False
        call.result = result.copy()
        if len(waiting) < ring.half_room:
            waiting.append(call)
        else:
            keep(call)
        if get() is not call:
            set_current(call)
        return result

    return recorded


def _wrap_coroutine(function: Callable[..., Awaitable[Any]], site: Site, bound: int) -> Wrapper:
    async def recorded(*args: Any, **kwargs: Any) -> Any:
        call = begin(site, args[bound:], kwargs)
        if call is None:
            return await function(*args, **kwargs)
        try:
            result = await function(*args, **kwargs)
        except BaseException as error:
            fail(call, error)
            raise
        return _returned(call, result)

    return recorded


def _wrap_generator(function: Callable[..., Any], site: Site, bound: int) -> Wrapper:
    def recorded(*args: Any, **kwargs: Any) -> Any:
        source = function(*args, **kwargs)
        call = begin(site, args[bound:], kwargs)
        return (yield from source if call is None else IteratorTap(source, Stream(call)))

    return recorded


def _wrap_async_generator(function: Callable[..., Any], site: Site, bound: int) -> Wrapper:
    def start(*args: Any, **kwargs: Any) -> Any:
        source = function(*args, **kwargs)
        call = begin(site, args[bound:], kwargs)
        return source if call is None else AsyncGeneratorTap(source, Stream(call))

    return delegating(start)


_KINDS: dict[str, Callable[[Callable[..., Any], Site, int], Wrapper]] = {
    "plain": _wrap_plain,
    "coroutine": _wrap_coroutine,
    "generator": _wrap_generator,
    "async generator": _wrap_async_generator,
}


def _returned(call: Call, result: Any) -> Any:
    """Record a result, now or when it is complete, and return what the caller shall get."""
    if type(result) in _PLAIN:
        finish(call, result)
        return result
    try:
        if isinstance(result, types.GeneratorType):
            return relay(IteratorTap(result, Stream(call)))
        if isinstance(result, types.AsyncGeneratorType):
            tap = AsyncGeneratorTap(result, Stream(call))
            return delegating(lambda: tap)()
        if isinstance(result, types.CoroutineType):
            call.active = False
            return _awaited(result, call)
        if isinstance(result, Iterator) and _is_bare(type(result)):
            return IteratorTap(result, Stream(call))
        if isinstance(result, AsyncIterator) and _is_bare(type(result)):
            return AsyncIteratorTap(result, Stream(call))
        if hasattr(result, "add_done_callback") and hasattr(result, "result"):
            return _when_done(result, call)
    except BaseException as error:  # noqa: BLE001 - an object may do anything when looked at
        spare_the_interrupt(error)
        finish(call, result)
        return result
    finish(call, result)
    return result


@functools.lru_cache(maxsize=512)
def _is_bare(kind: Hashable) -> bool:
    """Whether objects of a type are iterators and nothing else.

    A cursor or a file is more than that: it is handed on as it is, unread.
    """
    return all(name.startswith("_") or name in _OF_ITERATORS for name in dir(kind))


_OF_ITERATORS = ("close", "send", "throw", "aclose", "asend", "athrow", "aiter", "next")


async def _awaited(result: Awaitable[Any], call: Call) -> Any:
    call.active = True
    call.t0 = clock()
    current.set(call)
    try:
        value = await result
    except BaseException as error:
        fail(call, error)
        raise
    return _returned(call, value)


def _when_done(future: Any, call: Call) -> Any:
    """A future is handed on as it is; its answer is recorded when it has one."""
    call.active = False

    def record(done: Any) -> None:
        error = None if done.cancelled() else done.exception()
        if done.cancelled():
            fail(call, GeneratorExit())
        elif error is not None:
            fail(call, error)
        else:
            finish(call, done.result())

    future.add_done_callback(record)
    return future
