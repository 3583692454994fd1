"""Which adapter fits an object: told by where its classes come from, without importing any library."""

from __future__ import annotations

from importlib import import_module

from resweep.record.adapters.base import Adapter

# The top-level package of a class, and the adapter for what it makes. The first base class that is
# listed decides.
_BY_PACKAGE = {
    "langchain_core": "langchain",
    "langchain": "langchain",
    "langchain_classic": "langchain",
    "langchain_community": "langchain",
    "llama_index": "llamaindex",
    "haystack": "haystack",
    "haystack_integrations": "haystack",
    "qdrant_client": "qdrant",
    "chromadb": "chroma",
    "lancedb": "lancedb",
    "faiss": "faiss",
}


def adapter_for(obj: object) -> Adapter:
    """Return the adapter for an object or a function."""
    if not callable(getattr(obj, "__get__", None)):
        for kind in type(obj).__mro__:
            name = _BY_PACKAGE.get(kind.__module__.partition(".")[0])
            if name is not None:
                adapter: Adapter = import_module(f"resweep.record.adapters.{name}").ADAPTER
                if adapter.fits(obj):
                    return adapter
    return Adapter()
