"""A LangChain retriever under one of the usual instrumentations, which sends its spans to an agent.

Runs in an environment of its own: `python instrumented_app.py WHICH URL TOKEN`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor


class Shelf(BaseRetriever):
    """A retriever with some documents, none for an odd question."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        if query == "fail":
            raise TimeoutError("the index did not answer")
        found = 0 if query == "nothing" else 3
        return [
            Document(page_content=f"passage {at} about refunds", metadata={"source": f"{at}.md"})
            for at in range(found)
        ]


def instrumentor(which: str) -> Any:
    """Return an instrumentor by its name."""
    if which == "openinference":
        return import_module("openinference.instrumentation.langchain").LangChainInstrumentor()
    return import_module("opentelemetry.instrumentation.langchain").LangchainInstrumentor()


def main() -> None:
    """Retrieve four times; one finds nothing, one fails."""
    which, url, token = sys.argv[1:]
    provider = TracerProvider(resource=Resource({"service.name": which}))
    exporter = OTLPSpanExporter(f"{url}/v1/traces", headers={"authorization": f"Bearer {token}"})
    provider.add_span_processor(BatchSpanProcessor(exporter))
    instrumentor(which).instrument(tracer_provider=provider)
    for question in ("refunds", "returns", "nothing", "fail"):
        try:
            Shelf().invoke(question)
        except TimeoutError:
            continue
    assert provider.force_flush()
    provider.shutdown()


if __name__ == "__main__":
    main()
