"""Wrapped functions of every kind are told from bare ones by the count alone."""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
from collections.abc import AsyncIterator, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import resweep
from resweep.testing import MemorySink


@pytest.fixture
def sink() -> Iterator[MemorySink]:
    with resweep.testing.capture() as memory:
        yield memory


def plain(query: str, k: int = 2) -> list[str]:
    """Find passages."""
    return ["a", "b"][:k]


async def coroutine(query: str) -> list[str]:
    await asyncio.sleep(0)
    return ["a", "b"]


def generator(query: str) -> Iterator[str]:
    yield from ("a", "b")


async def async_generator(query: str) -> AsyncIterator[str]:
    for item in ("a", "b"):
        yield item


@pytest.mark.parametrize("function", [plain, coroutine, generator, async_generator])
def test_a_wrapper_is_of_the_same_kind(sink: MemorySink, function: Any) -> None:
    """inspect sees the same kind, name, signature and docstring."""
    wrapped = resweep.watch(function, sink=sink)
    for ask in (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction):
        assert ask(wrapped) == ask(function)
    assert inspect.signature(wrapped) == inspect.signature(function)
    assert (wrapped.__name__, wrapped.__doc__) == (function.__name__, function.__doc__)
    assert resweep.unwatch(wrapped) is function


def test_the_result_itself_comes_back(sink: MemorySink) -> None:
    """The same list object, not a copy."""
    result = ["a"]
    assert resweep.watch(lambda query: result, sink=sink)("q") is result


def test_a_result_changed_by_its_caller_is_recorded_as_it_was(sink: MemorySink) -> None:
    """Clearing the list right after the call changes no record."""
    wrapped: Any = resweep.watch(lambda query: ["a", "b"], sink=sink)
    wrapped("q").clear()
    assert sink.events[0].returned == 2


def test_exceptions_pass_unchanged(sink: MemorySink) -> None:
    """The same exception object reaches the caller."""
    error = KeyError("x")

    def fails(query: str) -> list[str]:
        raise error

    with pytest.raises(KeyError) as caught:
        resweep.watch(fails, sink=sink)("q")
    assert caught.value is error
    assert sink.counts["error:value"] == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_what_stops_a_call_from_outside_is_no_error(sink: MemorySink, error: type[BaseException]) -> None:
    """An interrupted call is partial: it takes no part in the error rate."""

    def stopped(query: str) -> list[str]:
        raise error

    with pytest.raises(error):
        resweep.watch(stopped, sink=sink)("q")
    assert (sink.counts["partial"], sink.counts["errors"]) == (1, 0)


async def test_a_coroutine_is_recorded_when_it_is_done(sink: MemorySink) -> None:
    """One record of two passages."""
    wrapped = resweep.watch(coroutine, sink=sink)
    assert await wrapped("q") == ["a", "b"]
    assert [event.returned for event in sink.events] == [2]


async def test_an_awaitable_out_of_a_plain_function_is_recorded(sink: MemorySink) -> None:
    """A lambda around a coroutine function is wrapped just as well, and a future too."""
    loop = asyncio.get_running_loop()
    resweep_futures = loop.create_future()
    wrapped: Any = resweep.watch(lambda query: coroutine(query), sink=sink)
    future = resweep.watch(lambda query: resweep_futures, sink=sink)("q")
    resweep_futures.set_result(["a"])
    assert await wrapped("q") == ["a", "b"]
    assert await future == ["a"]
    await asyncio.sleep(0)
    assert sorted(event.returned for event in sink.events) == [1, 2]


async def test_a_cancelled_task_is_partial(sink: MemorySink) -> None:
    """Cancelling is no error of the retriever."""

    async def hangs(query: str) -> list[str]:
        await asyncio.sleep(60)
        return []

    task = asyncio.ensure_future(resweep.watch(hangs, sink=sink)("q"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (sink.counts["partial"], sink.counts["errors"]) == (1, 0)


def echo(query: str) -> Generator[str, str, str]:
    got = yield "first"
    try:
        yield got
    except ValueError:
        yield "caught"
    return "end"


def test_send_throw_and_return_value_of_a_generator_are_kept(sink: MemorySink) -> None:
    """What is sent in arrives, what is thrown in is thrown, what is returned is returned."""
    stream = resweep.watch(echo, sink=sink)("q")
    assert next(stream) == "first"
    assert stream.send("sent") == "sent"
    assert stream.throw(ValueError()) == "caught"
    with pytest.raises(StopIteration) as end:
        next(stream)
    assert end.value.value == "end"
    assert [event.returned for event in sink.events] == [3]


def test_a_generator_out_of_a_plain_function_stays_one(sink: MemorySink) -> None:
    """Its type is kept, nothing is read ahead, and it counts when it is done."""
    made: list[int] = []

    def lazily(query: str) -> Any:
        return (made.append(i) or f"p{i}" for i in range(3))  # type: ignore[func-returns-value]

    stream = resweep.watch(lazily, sink=sink)("q")
    assert inspect.isgenerator(stream)
    assert (next(stream), made) == ("p0", [0])
    assert list(stream) == ["p1", "p2"]
    assert [event.returned for event in sink.events] == [3]


def test_calls_between_two_items_of_a_stream_count(sink: MemorySink) -> None:
    """While a stream is open its retriever may be called again; both are counted."""

    def lazily(query: str) -> Iterator[str]:
        yield from ("a", "b")

    wrapped = resweep.watch(lazily, sink=sink)
    for _ in wrapped("outer"):
        assert len(list(wrapped("inner"))) == 2
    assert sink.counts["retrievals"] == 3


async def test_an_async_generator_keeps_asend_athrow_and_aclose(sink: MemorySink) -> None:
    """Closed after one item it is one partial record of one."""
    closed = []

    async def stream(query: str) -> Any:
        try:
            got = yield "a"
            yield got
        finally:
            closed.append(True)

    watched = resweep.watch(stream, sink=sink)
    one = watched("q")
    assert await one.__anext__() == "a"
    assert await one.asend("sent") == "sent"
    await one.aclose()
    assert closed == [True]
    assert [(event.returned, event.partial) for event in sink.events] == [(2, True)]
    assert [item async for item in watched("q")] == ["a", None]
    assert [event.partial for event in sink.events] == [True, False]


def test_a_partial_and_a_method_are_wrapped(sink: MemorySink) -> None:
    """functools.partial and bound methods are callables like others."""

    class Index:
        def find(self, query: str, k: int) -> list[str]:
            return ["a"] * k

    resweep.watch(functools.partial(Index().find, k=3), sink=sink)("q")
    resweep.watch(Index().find, sink=sink)("q", 2)
    assert [(event.asked, event.returned) for event in sink.events] == [(3, 3), (2, 2)]


def test_a_retriever_that_calls_itself_counts_once(sink: MemorySink) -> None:
    """The outer call is the retrieval; what it does to answer is part of it."""

    def retrieve(query: str, deep: bool = True) -> list[str]:
        return [*wrapped("again", deep=False), "b"] if deep else ["a"]

    wrapped = resweep.watch(retrieve, sink=sink)
    assert wrapped("q") == ["a", "b"]
    assert [event.returned for event in sink.events] == [2]


def test_two_watched_retrievers_inside_one_another_count_each(sink: MemorySink) -> None:
    """The inner one has its own pipeline and count; the id in the outer one's code is the outer one's."""
    inner: Any = resweep.watch(lambda query: ["a"], sink=sink, pipeline="inner")
    ids = []

    def outer(query: str) -> list[str]:
        ids.append(resweep.current_event_id())
        found: list[str] = inner(query)
        ids.append(resweep.current_event_id())
        return found

    resweep.watch(outer, sink=sink, pipeline="outer")("q")
    ids.append(resweep.current_event_id())
    assert sorted(event.pipeline for event in sink.events) == ["inner", "outer"]
    assert ids == [next(e.id for e in sink.events if e.pipeline == "outer")] * 3


async def test_each_task_of_a_gather_keeps_its_own_event_id(sink: MemorySink) -> None:
    """200 tasks, 200 ids, each the id of its own answer."""

    async def retrieve(query: str) -> list[dict[str, str]]:
        await asyncio.sleep(0)
        return [{"id": query}]

    watched = resweep.watch(retrieve, sink=sink)

    async def ask(number: int) -> tuple[str, str | None]:
        await watched(f"q{number}")
        await asyncio.sleep(0)
        return f"q{number}", resweep.current_event_id()

    pairs = await asyncio.gather(*(ask(i) for i in range(200)))
    assert {event.hits[0].id: event.id for event in sink.events} == dict(pairs)
    assert len({id_ for _, id_ in pairs}) == 200


def test_threads_count_exactly_and_keep_their_ids(sink: MemorySink) -> None:
    """8 threads of 200 calls are 1,600 calls."""
    watched = resweep.watch(plain, sink=sink)

    def work(number: int) -> set[str | None]:
        ids = set()
        for _ in range(200):
            watched("q")
            ids.add(resweep.current_event_id())
        return ids

    with ThreadPoolExecutor(8) as pool:
        ids = set().union(*pool.map(work, range(8)))
    assert len(ids) == 1600
    assert sink.counts["retrievals"] == 1600


def test_there_is_no_event_id_outside_of_a_retrieval() -> None:
    """A fresh context has none."""
    seen: list[object] = []
    thread = threading.Thread(target=lambda: seen.append(resweep.current_event_id()))
    thread.start()
    thread.join()
    assert seen == [None]


class Hostile:
    """A result that does what it can to break its reader."""

    def __init__(self, raises: type[BaseException]) -> None:
        self.__dict__["raises"] = raises

    def __len__(self) -> int:
        raise self.raises("no length")

    def __iter__(self) -> Iterator[str]:
        raise self.raises("no items")

    def __getattr__(self, name: str) -> Any:
        raise self.__dict__["raises"]("no attributes")


@pytest.mark.parametrize("raises", [RuntimeError, SystemExit, GeneratorExit, asyncio.CancelledError])
@pytest.mark.parametrize("inside", [False, True])
def test_a_hostile_result_is_counted_and_handed_on(
    raises: type[BaseException], inside: bool, sink: MemorySink
) -> None:
    """Whatever it does when looked at, itself or inside a list, the caller gets it and the call counts."""
    result = [Hostile(raises)] if inside else Hostile(raises)
    assert resweep.watch(lambda query: result, sink=sink)("q") is result
    assert sink.counts["retrievals"] == 1


@pytest.mark.parametrize("wrong", [None, 7, int, object()])
def test_what_cannot_be_watched_comes_back_as_it_is(wrong: object, caplog: pytest.LogCaptureFixture) -> None:
    """A service starts, and the log says why nothing is recorded."""
    assert resweep.watch(wrong, sink="none") is wrong
    assert "is not watched" in caplog.text


class Cursor:
    """A database's cursor: an iterator with more to it."""

    def __init__(self) -> None:
        self.left = ["a", "b", "c"]

    def __iter__(self) -> Cursor:
        return self

    def __next__(self) -> str:
        if not self.left:
            raise StopIteration
        return self.left.pop(0)

    def fetchall(self) -> list[str]:
        taken, self.left = self.left, []
        return taken


class Lazy:
    """A query that runs when it is walked through."""

    ran = 0

    def __iter__(self) -> Iterator[str]:
        Lazy.ran += 1
        return iter(["a"])

    def __len__(self) -> int:
        Lazy.ran += 1
        return 1


def test_a_cursor_is_handed_on_unread(sink: MemorySink) -> None:
    """Its rows are the caller's; the call counts, and says nothing of depth."""
    cursor = Cursor()
    found = resweep.watch(lambda query, k: cursor, sink=sink)("q", 5)
    assert [event.asked for event in sink.events] == [None]
    assert found is cursor
    assert found.fetchall() == ["a", "b", "c"]
    assert sink.counts["short"] == 0


def test_nothing_is_run_to_be_looked_at(sink: MemorySink) -> None:
    """A lazy query is not run a second time for our sake."""
    resweep.watch(lambda query: Lazy(), sink=sink)("q")
    assert (sink.counts["retrievals"], Lazy.ran) == (1, 0)
