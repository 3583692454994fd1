"""What instrumentations call things: the mapping table, versioned, pinned to no single draft.

Read: OpenTelemetry GenAI (`gen_ai.retrieval.*`, and `gen_ai.request.top_k` of drafts before v0.1.0),
OpenInference (`retrieval.documents.N.document.*`), OpenLLMetry (`traceloop.*`, `db.*`), and resweep's own.
"""

from __future__ import annotations

from collections.abc import Mapping

MAPPING_VERSION = "resweep.otlp/1"

# one attribute -> the field of a span it fills
FIELDS: Mapping[str, str] = {
    "gen_ai.operation.name": "operation",
    "openinference.span.kind": "kind",
    "traceloop.span.kind": "kind",
    "gen_ai.retrieval.top_k": "asked",
    "gen_ai.request.top_k": "asked_old",
    "db.vector.query.top_k": "asked",
    "db.chroma.query.n_results": "asked",
    "db.pinecone.query.top_k": "asked",
    "db.qdrant.query.limit": "asked",
    "db.milvus.search.limit": "asked",
    "reranker.top_k": "rerank_asked",
    "gen_ai.retrieval.query.text": "query",
    "input.value": "query",
    "reranker.query": "query",
    "gen_ai.retrieval.documents": "documents",
    "gen_ai.retrieval.document_count": "count",
    "output.value": "output",
    "traceloop.entity.output": "output",
    "gen_ai.data_source.id": "data_source",
    "gen_ai.request.model": "model",
    "gen_ai.response.model": "response_model",
    "error.type": "error",
    "exception.type": "error",
    "resweep.pipeline": "pipeline",
    "resweep.config": "config",
    "resweep.event_id": "event_id",
    "resweep.asked": "asked",
    "resweep.returned": "returned",
    "resweep.candidates": "candidates",
    "resweep.reranked": "reranked",
}

# attribute families that list documents by index: prefix -> which list
LISTS: Mapping[str, str] = {
    "retrieval.documents.": "hits",
    "reranker.output_documents.": "hits",
    "reranker.input_documents.": "candidates",
}
PARTS: Mapping[str, int] = {"id": 0, "score": 1, "metadata": 2, "content": 3}
ID, SCORE, METADATA, CONTENT = range(4)
INDEX_READY = 256  # indices whose names are in the table; later ones are taken apart when they come
INDEX_MAX = 10_000

Slot = tuple[str, int, int]  # list, index, part

SLOTS: Mapping[str, Slot] = {
    f"{prefix}{index}.document.{part}": (name, index, place)
    for prefix, name in LISTS.items()
    for index in range(INDEX_READY)
    for part, place in PARTS.items()
}

RETRIEVAL_KINDS = ("retriever", "retrieval", "vector_db_retrieve")
RERANK_KINDS = ("reranker", "rerank")
# names of database spans that are retrievals, where no attribute says so
SPAN_NAMES = (
    "vector_db_retrieve",
    "retrieval",
    "chroma.query",
    "pinecone.query",
    "qdrant.search",
    "milvus.search",
)


def slot(key: str) -> Slot | None:
    """Return the slot of a key the table does not hold; None for a malformed one of a list's family."""
    for prefix, name in LISTS.items():
        if not key.startswith(prefix):
            continue
        index, _, rest = key[len(prefix) :].partition(".")
        part = PARTS.get(rest.removeprefix("document."))
        if part is not None and index.isascii() and index.isdigit() and int(index) <= INDEX_MAX:
            return (name, int(index), part)
    return None


def listed(key: str) -> bool:
    """Whether a key belongs to a list of documents."""
    return key.startswith(tuple(LISTS))
