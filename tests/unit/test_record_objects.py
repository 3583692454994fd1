"""Objects are watched in place: same object, same class wherever asked, and back again."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

import resweep
from resweep.testing import MemorySink


@pytest.fixture
def sink() -> Iterator[MemorySink]:
    with resweep.testing.capture() as memory:
        yield memory


class Retriever:
    def __init__(self, top_k: int = 3) -> None:
        self.top_k = top_k

    def retrieve(self, query: str) -> list[str]:
        return [f"{query} {i}" for i in range(self.top_k)]

    async def aretrieve(self, query: str) -> list[str]:
        return self.retrieve(query)

    def __call__(self, query: str) -> list[str]:
        return self.retrieve(query)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, self.__class__) and other.top_k == self.top_k

    __hash__ = None  # type: ignore[assignment]


class Slotted:
    __slots__ = ("k",)

    def __init__(self) -> None:
        self.k = 2

    def search(self, query: str) -> list[str]:
        return ["a"] * self.k


class Closed:
    """A class that allows no subclass."""

    k = 4

    def __init_subclass__(cls) -> None:
        raise TypeError("no subclasses")

    def search(self, query: str) -> list[str]:
        return ["a"] * 3

    def __len__(self) -> int:
        return 9


def test_the_same_object_comes_back(sink: MemorySink) -> None:
    """Identity, class, isinstance, repr of the class and equality stay."""
    retriever = Retriever()
    assert resweep.watch(retriever, sink=sink) is retriever
    assert retriever.__class__ is Retriever
    assert isinstance(retriever, Retriever)
    assert type(retriever).__name__ == "Retriever"
    assert retriever == Retriever()
    assert Retriever() == retriever


async def test_every_way_to_ask_counts_once(sink: MemorySink) -> None:
    """Methods that call one another inside are one retrieval; asked is what the object is set to."""
    retriever = resweep.watch(Retriever(), sink=sink)
    retriever("a")
    retriever.retrieve("b")
    await retriever.aretrieve("c")
    assert [(event.asked, event.returned) for event in sink.events] == [(3, 3)] * 3


def test_watching_twice_counts_once(sink: MemorySink) -> None:
    """The second watch changes nothing; one with another pipeline takes over."""
    retriever = Retriever()
    for _ in range(2):
        retriever = resweep.watch(retriever, sink=sink, pipeline="one")
    retriever.retrieve("q")
    resweep.watch(retriever, sink=sink, pipeline="two").retrieve("q")
    assert [event.pipeline for event in sink.events] == ["one", "two"]


def test_unwatch_restores_the_original(sink: MemorySink) -> None:
    """The class is the very one of before and nothing is recorded."""
    retriever = resweep.watch(Retriever(), sink=sink)
    assert resweep.unwatch(retriever) is retriever
    assert type(retriever) is Retriever
    retriever.retrieve("q")
    assert sink.counts["retrievals"] == 0


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_watched_object_pickles_as_the_original(sink: MemorySink, protocol: int) -> None:
    """Who loads it needs no resweep and records nothing."""
    retriever = resweep.watch(Retriever(7), sink=sink)
    loaded = pickle.loads(pickle.dumps(retriever, protocol))
    assert type(loaded) is Retriever
    assert loaded.top_k == 7
    assert type(copy.deepcopy(retriever)) is Retriever


def test_slots_are_no_obstacle(sink: MemorySink) -> None:
    """An object without a __dict__ is watched in place as well."""
    slotted = Slotted()
    assert resweep.watch(slotted, sink=sink) is slotted
    assert slotted.search("q") == ["a", "a"]
    assert [(event.asked, event.returned) for event in sink.events] == [(2, 2)]


def test_a_class_that_cannot_be_changed_gets_a_proxy(sink: MemorySink) -> None:
    """The proxy passes for the object and gives it back."""
    closed = Closed()
    proxy: Any = resweep.watch(closed, sink=sink)
    assert isinstance(proxy, Closed)
    assert (proxy.search("q"), len(proxy), proxy.k) == (["a"] * 3, 9, 4)
    assert proxy == closed
    assert resweep.unwatch(proxy) is closed
    assert [event.returned for event in sink.events] == [3]


def test_a_function_that_the_object_carries_itself_is_watched(sink: MemorySink) -> None:
    """An attribute set in __init__ hides the method of the class."""

    class Patched:
        def __init__(self) -> None:
            self.search = lambda query: ["a", "b"]

    patched: Any = resweep.watch(Patched(), sink=sink)
    assert patched.search("q") == ["a", "b"]
    resweep.unwatch(patched).search("q")
    assert [event.returned for event in sink.events] == [2]


def test_a_dataclass_stays_one(sink: MemorySink) -> None:
    """Fields, repr and equality are those of the class."""

    @dataclass
    class Index:
        limit: int

        def search(self, query: str) -> list[str]:
            return ["a"]

    index = resweep.watch(Index(5), sink=sink)
    assert repr(index).endswith("Index(limit=5)")
    assert index == Index(5)


def test_isinstance_of_siblings_is_not_disturbed(sink: MemorySink) -> None:
    """Asking for the class of a watched object must not spoil the cache of an abstract base."""
    from abc import ABC, abstractmethod

    class Base(ABC):
        @abstractmethod
        def search(self, query: str) -> list[str]: ...

    class One(Base):
        def search(self, query: str) -> list[str]:
            return ["a"]

    class Two(One):
        pass

    watched = resweep.watch(One(), sink=sink)
    assert not isinstance(Two(), type(watched))
    assert isinstance(Two(), One)
    assert isinstance(watched, Base)


def test_other_names_are_given(sink: MemorySink) -> None:
    """`methods` names what retrieves where no usual name does."""

    class Finder:
        def look_up(self, query: str) -> list[str]:
            return ["a"]

    resweep.watch(Finder(), sink=sink, methods=["look_up"]).look_up("q")
    assert sink.counts["retrievals"] == 1


def test_a_depth_changed_on_the_live_object_is_seen(sink: MemorySink) -> None:
    """What the object says of itself is read again, and said again."""
    retriever = resweep.watch(Retriever(3), sink=sink, config={"context_k": 3})
    retriever.retrieve("q")
    sink.flush()
    retriever.top_k = 8
    sink.flush()
    retriever.retrieve("q")
    assert [event.asked for event in sink.events] == [3, 8]
    assert [record.observed["k"] for record in sink.configs] == [3, 8]


def test_batches_count_their_questions(sink: MemorySink) -> None:
    """A batch that asks one by one, in threads, is as many retrievals as it has questions."""

    class Many(Retriever):
        def batch(self, queries: list[str]) -> list[list[str]]:
            with ThreadPoolExecutor(4) as pool:
                return list(pool.map(self.retrieve, queries))

    resweep.watch(Many(), sink=sink).batch(["a", "b", "c"])
    assert sink.counts["retrievals"] == 3


def test_what_no_answer_carries_is_said(sink: MemorySink) -> None:
    """After twenty passages without scores and sources the config says so; with some it says so no more."""
    answer: list[dict[str, object]] = [{"id": "a", "text": "t"}] * 10
    retrieve: Any = resweep.watch(lambda query: answer, sink=sink, config={"context_k": 10})
    for _ in range(3):
        retrieve("q")
    sink.flush()
    sink.flush()
    said: list[object] = [sink.configs[-1].observed["missing"]]
    answer[:] = [{"id": "a", "text": "t", "score": 0.5, "source": "a.md"}]
    retrieve("q")
    sink.flush()
    sink.flush()
    said.append(sink.configs[-1].observed["missing"])
    assert said == ["scores, sources", ""]
