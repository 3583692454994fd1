"""The cases of overhead.py: one retriever, recorded by hand, by others and by resweep.

Each case is a function from the bare retriever to the retriever to call. Facts recorded by hand are the same
everywhere: duration, passages, context tokens (a quarter of the characters), distinct sources, top score.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import Any

SOURCES = 1_000
PASSAGES = 8
CHARACTERS = 3_100
Retriever = Callable[[str], list[Any]]
Case = Callable[[Retriever], Retriever]
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
TOKENS = (0, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768)
SCORES = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0)


class Document:
    """What vector stores return: an id, a text, metadata with source and score."""

    def __init__(self, number: int) -> None:
        self.id = f"p{number}"
        self.page_content = (f"passage {number} of the corpus " * 200)[:CHARACTERS]
        self.metadata = {"source": f"s{number % SOURCES}.md", "score": 0.95 - number % PASSAGES / 20}


def retriever() -> Retriever:
    """Return a retriever over a corpus in memory: another eight passages each call, in a new list."""
    corpus = [Document(number) for number in range(SOURCES)]
    at = 0

    def retrieve(query: str) -> list[Any]:
        nonlocal at
        at = (at + PASSAGES) % (SOURCES - PASSAGES)
        return corpus[at : at + PASSAGES]

    return retrieve


def facts(documents: list[Any]) -> tuple[int, int, int, float]:
    """Return passages, tokens, distinct sources and top score."""
    characters, top = 0, 0.0
    sources = set()
    for document in documents:
        characters += len(document.page_content)
        metadata = document.metadata
        sources.add(metadata["source"])
        top = max(top, metadata["score"])
    return len(documents), characters // 4, len(sources), top


def floor_clock(retrieve: Retriever) -> Retriever:
    """Clock and keep: nothing is derived, the oldest records are overwritten."""
    ring: deque[Any] = deque(maxlen=4096)

    def recorded(*args: Any, **kwargs: Any) -> list[Any]:
        began = perf_counter()
        result = retrieve(*args, **kwargs)
        ring.append((began, perf_counter(), result))
        return result

    return recorded


def floor_derive(retrieve: Retriever) -> Retriever:
    """Derive and bucket by hand: the facts into four histograms and two counters of our own."""
    seconds, tokens, scores, sources = [0] * 12, [0] * 11, [0] * 8, [0] * 12
    counts = [0, 0]

    def recorded(*args: Any, **kwargs: Any) -> list[Any]:
        began = perf_counter()
        result = retrieve(*args, **kwargs)
        took = perf_counter() - began
        passages, context, distinct, top = facts(result)
        seconds[bisect_left(SECONDS, took)] += 1
        tokens[bisect_left(TOKENS, context)] += 1
        scores[bisect_left(SCORES, top)] += 1
        sources[min(distinct, 11)] += 1
        counts[0] += 1
        counts[1] += not passages
        return result

    return recorded


def prometheus_client(retrieve: Retriever) -> Retriever:
    """The same facts into prometheus_client, its children bound beforehand."""
    from prometheus_client import CollectorRegistry, Counter, Histogram

    registry = CollectorRegistry()
    bound = ("p", "c")
    names = ("pipeline", "config")
    calls = Counter("calls", "x", names, registry=registry).labels(*bound)
    empties = Counter("empties", "x", names, registry=registry).labels(*bound)
    seconds = Histogram("seconds", "x", names, buckets=SECONDS, registry=registry).labels(*bound)
    tokens = Histogram("tokens", "x", names, buckets=TOKENS, registry=registry).labels(*bound)
    scores = Histogram("scores", "x", names, buckets=SCORES, registry=registry).labels(*bound)
    sources = Histogram("sources", "x", names, buckets=tuple(range(11)), registry=registry).labels(*bound)

    def recorded(*args: Any, **kwargs: Any) -> list[Any]:
        began = perf_counter()
        result = retrieve(*args, **kwargs)
        seconds.observe(perf_counter() - began)
        passages, context, distinct, top = facts(result)
        tokens.observe(context)
        scores.observe(top)
        sources.observe(distinct)
        calls.inc()
        if not passages:
            empties.inc()
        return result

    return recorded


def otel_span(retrieve: Retriever) -> Retriever:
    """One OpenTelemetry span with ids and scores, through a batch processor to an exporter that drops it."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

    class Nowhere(SpanExporter):
        def export(self, spans: Any) -> SpanExportResult:
            return SpanExportResult.SUCCESS

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(Nowhere()))
    tracer = provider.get_tracer("benchmark")

    def recorded(*args: Any, **kwargs: Any) -> list[Any]:
        with tracer.start_as_current_span("retrieval") as span:
            result = retrieve(*args, **kwargs)
            span.set_attribute("gen_ai.operation.name", "retrieval")
            span.set_attribute("gen_ai.retrieval.top_k", PASSAGES)
            span.set_attribute("ids", [document.id for document in result])
            span.set_attribute("scores", [document.metadata["score"] for document in result])
        return result

    return recorded


def resweep_metrics(retrieve: Retriever) -> Retriever:
    """resweep with every metric on, shown by this process itself."""
    from prometheus_client import CollectorRegistry

    import resweep

    config = {"embedder": {"model": "m1"}, "context_k": PASSAGES}
    return resweep.watch(retrieve, pipeline="p", config=config, sink="none", registry=CollectorRegistry())


CASES: dict[str, Case] = {
    "floor_clock": floor_clock,
    "floor_derive": floor_derive,
    "prometheus_client": prometheus_client,
    "otel_span": otel_span,
    "resweep": resweep_metrics,
}


def langchain_bare() -> Retriever:
    """A BaseRetriever of LangChain over the same corpus, asked by `invoke`."""
    return _langchain().invoke  # type: ignore[no-any-return]


def langchain_resweep() -> Retriever:
    """The same retriever, watched."""
    from prometheus_client import CollectorRegistry

    import resweep

    watched = resweep.watch(
        _langchain(), pipeline="lc", config={"context_k": PASSAGES}, sink="none", registry=CollectorRegistry()
    )
    return watched.invoke  # type: ignore[no-any-return]


def _langchain() -> Any:
    from langchain_core.documents import Document as LangChainDocument
    from langchain_core.retrievers import BaseRetriever

    corpus = [
        LangChainDocument(d.page_content, id=d.id, metadata=d.metadata) for d in map(Document, range(SOURCES))
    ]

    class Memory(BaseRetriever):
        at: int = 0

        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Any]:
            self.at = (self.at + PASSAGES) % (SOURCES - PASSAGES)
            return corpus[self.at : self.at + PASSAGES]

    return Memory()


def openinference() -> Retriever | None:
    """The same retriever under OpenInference's instrumentor, where it is installed."""
    try:
        from openinference.instrumentation.langchain import LangChainInstrumentor
    except ImportError:
        return None
    return _instrumented(LangChainInstrumentor())


def openllmetry() -> Retriever | None:
    """The same retriever under OpenLLMetry's instrumentor, where it is installed."""
    try:
        from opentelemetry.instrumentation.langchain import LangchainInstrumentor
    except ImportError:
        return None
    return _instrumented(LangchainInstrumentor())


def _instrumented(instrumentor: Any) -> Retriever:
    from opentelemetry.sdk.trace import TracerProvider

    instrumentor.instrument(tracer_provider=TracerProvider(), skip_dep_check=True)
    invoke = _langchain().invoke

    def recorded(query: str) -> list[Any]:
        return invoke(query)  # type: ignore[no-any-return]

    recorded.undo = instrumentor.uninstrument  # type: ignore[attr-defined]
    return recorded
