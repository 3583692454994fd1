"""Work in the user's process: what is offered, what a leased call does, and what it never does."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

import resweep
from resweep.domain.work import Ask, Can, Leased, Offer, Work, WorkAnswer, WorkKind
from resweep.record.asked import complete, deeper, way_of
from resweep.record.embedding import embed_with, embedder_of
from resweep.record.hand import HELD_MAX
from resweep.record.process import recorders
from resweep.record.work import Worker, take_up
from resweep.testing import MemorySink, capture

CONFIG = {"embedder": {"model": "m1"}, "context_k": 3}


class Desk:
    """The agent's side: keeps offers and answers, and leases what the test wants done."""

    def __init__(self) -> None:
        self.todo: list[Work] = []
        self.offers: list[Offer] = []
        self.answers: list[WorkAnswer] = []

    def ask(self, offer: Offer) -> Leased:
        """Lease what is to be done."""
        self.offers.append(offer)
        work, self.todo = tuple(self.todo), []
        return Leased(work=work, again_s=1.0, pause_s=0.0)

    def answer(self, answer: WorkAnswer) -> None:
        """Keep an answer."""
        self.answers.append(answer)

    @property
    def can(self) -> Can:
        """What the only retriever can do, as offered last."""
        (one,) = self.offers[-1].can
        return one


class Bench:
    """A watched retriever with a worker that the test turns by hand."""

    def __init__(self, sink: MemorySink, retriever: Any, **how: Any) -> None:
        self.sink, self.desk = sink, Desk()
        names = how.pop("methods", [])
        embed = how.pop("embed", None)
        how.setdefault("capture", "sampled")
        self.call = resweep.watch(retriever, pipeline="bot", config=CONFIG, sink=sink, **how)
        (self.recorder,) = [one for one in recorders().values() if one.sink is sink]
        (self.watch,) = self.recorder.watches
        self.recorder.worker = self.worker = Worker(self.recorder, self.desk)
        take_up(self.recorder, self.watch, self.call, names, embed, True)

    def do(self, kind: WorkKind, *asks: Ask, **more: Any) -> WorkAnswer:
        """Lease one piece of work and return what it came to."""
        record = self.watch.record
        work = Work(
            id="w", kind=kind, pipeline="bot", config=record.config, basis=record.basis, asks=asks, **more
        )
        self.desk.todo = [work]
        self.worker.turn()
        return self.desk.answers[-1]

    def probe(self, k: int = 40) -> WorkAnswer:
        """Probe the newest event."""
        return self.do("probe", k=k, event_id=self.sink.events[-1].id)


@pytest.fixture(name="sink")
def _sink() -> Iterator[MemorySink]:
    with capture() as sink:
        yield sink


def passages(k: int) -> list[dict[str, Any]]:
    """Return k passages."""
    return [{"id": f"p{i}", "score": 1 - i / 100, "text": f"text {i}"} for i in range(k)]


def plain(query: str, k: int = 3, tenant: str | None = None) -> list[dict[str, Any]]:
    """A retriever that takes a depth."""
    return passages(k)


def test_canaries_are_off_the_record(sink: MemorySink) -> None:
    """Leased calls enter no window and no sample."""
    bench = Bench(sink, plain)
    bench.call("a live question")
    answer = bench.do("retrieve", Ask(id="a", text="one"), Ask(id="b", text="two"))
    assert [(one.id, len(one.hits)) for one in answer.retrieved] == [("a", 3), ("b", 3)]
    assert answer.retrieved[0].hits[0].text is None
    assert (sink.counts["retrievals"], len(sink.events)) == (1, 1)


def test_a_canary_inside_another_watched_retriever_is_off_the_record_too(sink: MemorySink) -> None:
    """The inner one is somebody else's pipeline."""
    inner = resweep.watch(plain, pipeline="inner", config=CONFIG, sink=sink)

    def both(query: str, k: int = 3) -> list[dict[str, Any]]:
        return inner(query, k)

    with capture() as other:
        Bench(other, both).do("retrieve", Ask(id="a", text="one"))
        assert other.counts["retrievals"] == 0
    assert sink.counts["retrievals"] == 0


def test_a_probe_makes_the_call_again_deeper(sink: MemorySink) -> None:
    """With its own tenant, at the wanted depth, and with the texts."""
    seen: list[tuple[str, int, str | None]] = []

    def retrieve(query: str, k: int = 3, tenant: str | None = None) -> list[dict[str, Any]]:
        seen.append((query, k, tenant))
        return passages(k)

    bench = Bench(sink, retrieve)
    bench.call("where", tenant="acme")
    answer = bench.probe()
    assert seen[-1] == ("where", 40, "acme")
    assert len(answer.retrieved[0].hits) == 40
    assert answer.retrieved[0].hits[0].text == "text 0"
    assert sink.counts["retrievals"] == 1


def test_a_probe_goes_through_redaction(sink: MemorySink) -> None:
    """As every text that leaves the process."""
    bench = Bench(sink, plain, redact=lambda text: text.replace("text", "***"))
    bench.call("where")
    assert bench.probe().retrieved[0].hits[0].text == "*** 0"


def test_the_users_own_probe_is_given_question_depth_and_arguments(sink: MemorySink) -> None:
    """probe(query, k, **kwargs)."""
    seen: list[Any] = []

    def probe(query: str, k: int, **kwargs: Any) -> list[dict[str, Any]]:
        seen.append((query, k, kwargs))
        return passages(k)

    bench = Bench(sink, plain, probe=probe)
    bench.call("where", k=5, tenant="acme")
    assert len(bench.probe().retrieved[0].hits) == 40
    assert seen == [("where", 40, {"tenant": "acme"})]


def test_where_k_cannot_be_raised_it_is_said_once(sink: MemorySink, caplog: pytest.LogCaptureFixture) -> None:
    """In the log and in the offer; nothing is called."""
    bench = Bench(sink, lambda query: passages(3))
    for _ in range(3):
        bench.call("where")
        assert bench.probe().error == "depth is fixed"
    assert sum("cannot look deeper" in line for line in caplog.messages) == 1
    bench.worker.turn()
    assert (bench.desk.can.depth, "probe" in bench.desk.can.kinds) == ("fixed", False)


def test_a_call_that_is_no_longer_held_is_gone(sink: MemorySink) -> None:
    """Only so many are kept, and each for one probe."""
    bench = Bench(sink, plain)
    bench.call("first")
    first = sink.events[-1].id
    for n in range(HELD_MAX):
        bench.call(f"q{n}")
    sink.flush()
    assert bench.do("probe", k=40, event_id=first).error == "gone"
    assert bench.probe().error is None
    assert bench.probe().error == "gone"


def test_a_failing_retriever_is_left_alone(sink: MemorySink) -> None:
    """The first failure ends the work; the offer says that it rests."""
    calls: list[str] = []

    def broken(query: str) -> list[Any]:
        calls.append(query)
        raise ConnectionError("down")

    bench = Bench(sink, broken)
    answer = bench.do("retrieve", *(Ask(id=str(n), text="t") for n in range(10)))
    assert (len(calls), answer.retrieved[0].error) == (1, "ConnectionError: down")
    bench.worker.turn()
    assert (bench.desk.can.resting, bench.desk.can.trouble) == (True, "ConnectionError: down")


def test_an_error_keeps_its_text_where_texts_are_not_kept(sink: MemorySink) -> None:
    """It may hold the question."""

    def broken(query: str) -> list[Any]:
        raise ValueError(f"cannot find {query}")

    bench = Bench(sink, broken, capture="none")
    assert bench.do("retrieve", Ask(id="a", text="secret")).retrieved[0].error == "ValueError"


def test_a_sampled_live_failure_is_a_reason_to_rest(sink: MemorySink) -> None:
    """Never on a failing retriever."""

    def sometimes(query: str) -> list[Any]:
        raise TimeoutError

    bench = Bench(sink, sometimes)
    with pytest.raises(TimeoutError):
        bench.call("live")
    assert sink.counts["errors"] == 1
    bench.worker.turn()
    assert bench.desk.can.resting


def test_texts_are_embedded_one_by_one(sink: MemorySink) -> None:
    """By the user's function."""
    bench = Bench(sink, plain, embed=lambda text: [float(len(text)), 1.0])
    answer = bench.do("embed", Ask(id="a", text="xyz"), Ask(id="b", text=""))
    assert [(one.id, one.vector) for one in answer.vectors] == [("a", (3.0, 1.0)), ("b", (0.0, 1.0))]


def test_without_content_there_are_canaries_and_no_probes(sink: MemorySink) -> None:
    """No argument of a call is kept where no text is."""
    bench = Bench(sink, plain, capture="none")
    bench.worker.turn()
    assert bench.desk.can.kinds == ("retrieve",)
    assert bench.watch.hold is None


def test_a_retriever_that_is_gone_is_offered_no_more(sink: MemorySink) -> None:
    """Nor kept alive."""
    bench = Bench(sink, plain)
    bench.worker.turn()
    offers = len(bench.desk.offers)
    del bench.call
    gc.collect()
    bench.worker.turn()
    assert len(bench.desk.offers) == offers


class Store:
    """An object with methods, sync and async."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    async def asearch(self, query: str, *, top_k: int = 3) -> list[dict[str, Any]]:
        """Search, as a coroutine."""
        return self.search(query, top_k=top_k)

    def search(self, query: str, *, top_k: int = 3) -> list[dict[str, Any]]:
        """Search."""
        self.asked.append(top_k)
        return passages(top_k)


def test_an_objects_method_is_called_as_it_was(sink: MemorySink) -> None:
    """The one that made the call; a canary prefers one that needs no event loop."""
    store = Store()
    bench = Bench(sink, store, methods=["asearch", "search"])
    asyncio.run(bench.call.asearch("where"))
    assert len(bench.probe().retrieved[0].hits) == 40
    assert bench.do("retrieve", Ask(id="a", text="x")).retrieved[0].error is None
    assert store.asked == [3, 40, 3]
    assert sink.counts["retrievals"] == 1


async def _async_items() -> AsyncIterator[int]:
    yield 1
    yield 2


@pytest.mark.parametrize("result", [lambda: iter([1, 2]), lambda: [1, 2], _async_items])
def test_lazy_answers_are_read_to_their_end(result: Callable[[], Any]) -> None:
    """Iterators, lists, async generators."""
    assert complete(result()) == [1, 2]


def keyword(*, query: str, limit: int = 5) -> None:
    """A component that takes keywords only."""


def open_ended(query: str, **kwargs: Any) -> None:
    """A function whose keywords go who knows where."""


def test_how_a_function_is_asked_follows_from_its_signature() -> None:
    """Its question goes first or by name; its depth by the name it has."""
    assert way_of(plain) == (None, "k", False)
    assert way_of(keyword) == ("query", "limit", False)
    assert deeper(plain, ("q", 3), {}, 40) == (("q", 40), {})
    assert deeper(plain, ("q",), {"tenant": "a"}, 40) == (("q",), {"tenant": "a", "k": 40})
    assert deeper(keyword, (), {"query": "q", "limit": 3}, 40) == ((), {"query": "q", "limit": 40})
    assert deeper(open_ended, ("q",), {}, 40) is None


class Holder:
    """A retriever with an index with an embedder."""

    class Vectors:
        """An index."""

        class embeddings:  # noqa: N801 - the name that frameworks use
            """An embedder."""

            @staticmethod
            def embed_query(text: str) -> list[float]:
                """Return a vector."""
                return [1.0, 2.0]

    vectorstore = Vectors


def test_the_embedder_is_found_where_frameworks_keep_it() -> None:
    """Also inside the index; nothing where there is none."""
    found = embedder_of(Holder)
    assert found is not None
    assert embed_with(found, "x") == (1.0, 2.0)
    assert embedder_of(plain) is None


@pytest.mark.parametrize("vector", [[], [float("nan")], "text"])
def test_what_is_no_vector_is_refused(vector: object) -> None:
    """Empty, not finite, not numbers."""
    with pytest.raises((ValueError, TypeError)):
        embed_with(lambda _: vector, "x")
