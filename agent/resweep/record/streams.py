"""Answers that come bit by bit: counted when they end, never read ahead.

While an item is awaited the call is active, so nested calls belong to it; between two items it is not. A
stream closed early is partial; one that raises is an error with the items it had given.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from typing import Any

from resweep.record.call import PARTIAL, Call, current, fail, finish
from resweep.record.passages import HITS_MAX


class Stream:
    """What a stream has given so far, and its one record."""

    __slots__ = ("call", "items", "open", "total")

    def __init__(self, call: Call) -> None:
        self.call = call
        self.items: list[Any] = []
        self.total = 0
        self.open = True
        call.active = False

    def begin(self) -> None:
        """An item is awaited."""
        if self.open:
            self.call.active = True
            current.set(self.call)

    def got(self, item: Any) -> Any:
        """An item came."""
        self.call.active = False
        self.total += 1
        if self.total <= HITS_MAX:
            self.items.append(item)
        return item

    def done(self) -> None:
        """The stream came to its end."""
        if self._last():
            finish(self.call, self._passages())

    def closed(self) -> None:
        """The stream was closed before its end."""
        if self._last():
            self.call.state = PARTIAL
            finish(self.call, self._passages())

    def failed(self, error: BaseException) -> None:
        """The source raised."""
        if isinstance(error, GeneratorExit):
            self.closed()
        elif self._last():
            fail(self.call, error)

    def _last(self) -> bool:
        was_open, self.open = self.open, False
        self.call.active = False
        self.call.total = self.total
        return was_open

    def _passages(self) -> list[Any]:
        """The items; where each is itself a list of passages, those."""
        if self.items and all(type(item) is list for item in self.items):
            together = [passage for item in self.items for passage in item]
            self.call.total = len(together)
            return together[:HITS_MAX]
        return self.items


def relay(tap: IteratorTap) -> Generator[Any, Any, Any]:
    """Return a generator over a tap: what a caller gets who would have got a generator."""
    return (yield from tap)


class IteratorTap:
    """An iterator in front of another; every attribute of the other is there too."""

    def __init__(self, source: Iterator[Any], stream: Stream) -> None:
        self._source = source
        self._stream = stream

    def __iter__(self) -> IteratorTap:
        return self

    def __next__(self) -> Any:
        return self._step(self._source.__next__)

    def send(self, value: Any) -> Any:
        """Hand a value to the source and return its next item."""
        return self._step(self._source.send, value)  # type: ignore[attr-defined]

    def throw(self, *error: Any) -> Any:
        """Raise an exception inside the source."""
        throw = getattr(self._source, "throw", None)
        if throw is None:
            raised = error[0] if isinstance(error[0], BaseException) else error[0]()
            self._stream.failed(raised)
            raise raised
        return self._step(throw, *error)

    def close(self) -> None:
        """Close the source; what was given by then is recorded as partial."""
        try:
            close = getattr(self._source, "close", None)
            if close is not None:
                close()
        finally:
            self._stream.closed()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def __del__(self) -> None:
        stream = self.__dict__.get("_stream")
        if stream is not None:
            stream.closed()

    def _step(self, step: Any, *args: Any) -> Any:
        self._stream.begin()
        try:
            item = step(*args)
        except StopIteration:
            self._stream.done()
            raise
        except BaseException as error:
            self._stream.failed(error)
            raise
        return self._stream.got(item)


class AsyncIteratorTap:
    """An async iterator in front of another; every attribute of the other is there too."""

    def __init__(self, source: AsyncIterator[Any], stream: Stream) -> None:
        self._source = source
        self._stream = stream

    def __aiter__(self) -> AsyncIteratorTap:
        return self

    async def __anext__(self) -> Any:
        return await self._step(self._source.__anext__)

    async def _step(self, step: Callable[..., Any], *args: Any) -> Any:
        self._stream.begin()
        try:
            item = await step(*args)
        except StopAsyncIteration:
            self._stream.done()
            raise
        except BaseException as error:
            self._stream.failed(error)
            raise
        return self._stream.got(item)

    async def aclose(self) -> None:
        """Close the source; what was given by then is recorded as partial."""
        try:
            close = getattr(self._source, "aclose", None)
            if close is not None:
                await close()
        finally:
            self._stream.closed()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def __del__(self) -> None:
        stream = self.__dict__.get("_stream")
        if stream is not None:
            stream.closed()


class AsyncGeneratorTap(AsyncIteratorTap):
    """An async generator's twin, with asend and athrow handed on."""

    async def asend(self, value: Any) -> Any:
        """Hand a value to the source and return its next item."""
        return await self._step(self._source.asend, value)  # type: ignore[attr-defined]

    async def athrow(self, *error: Any) -> Any:
        """Raise an exception inside the source."""
        return await self._step(self._source.athrow, *error)  # type: ignore[attr-defined]


def delegating(start: Callable[..., Any]) -> Callable[..., AsyncGenerator[Any, Any]]:
    """Return an async generator function over what `start` returns: PEP 380 for async generators."""

    async def recorded(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        source = start(*args, **kwargs)
        step: Callable[..., Any] = source.__anext__
        values: tuple[Any, ...] = ()
        while True:
            try:
                item = await step(*values)
            except StopAsyncIteration:
                return
            try:
                step, values = source.asend, ((yield item),)
            except GeneratorExit:
                await source.aclose()
                raise
            except BaseException as error:  # noqa: BLE001 - handed on to the source, which decides
                step, values = source.athrow, (error,)

    return recorded
