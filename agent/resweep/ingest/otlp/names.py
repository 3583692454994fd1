"""What instrumentations call things: the mapping table, versioned, pinned to no single draft.

Read: OpenTelemetry GenAI (`gen_ai.retrieval.*`, and `gen_ai.request.top_k` of drafts before v0.1.0),
OpenInference (`retrieval.documents.N.document.*`), OpenLLMetry (`traceloop.*`, `db.*`), and resweep's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

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
    "llm.model_name": "response_model",
    "gen_ai.system_fingerprint": "system_fingerprint",
    "gen_ai.openai.response.system_fingerprint": "system_fingerprint",
    "openai.response.system_fingerprint": "system_fingerprint",
    "gen_ai.usage.input_tokens": "prompt_tokens",
    "gen_ai.usage.prompt_tokens": "prompt_tokens",
    "llm.token_count.prompt": "prompt_tokens",
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

CONTENT = ("query",)  # fields that are nothing but text: not read where content is off

# attribute families that list documents by index: prefix -> which list
LISTS: Mapping[str, str] = {
    "retrieval.documents.": "hits",
    "reranker.output_documents.": "hits",
    "reranker.input_documents.": "candidates",
}
_PREFIXES = tuple(LISTS)
PARTS = ("id", "score", "metadata", "content")
INDEX_READY = 128  # indices whose names are made ahead; later ones are taken apart when they come
INDEX_MAX = 10_000

# the four names of each ready index, of the family that holds what was returned
RETRIEVED: Sequence[tuple[str, str, str, str]] = tuple(
    (f"{stem}.id", f"{stem}.score", f"{stem}.metadata", f"{stem}.content")
    for stem in (f"retrieval.documents.{index}.document" for index in range(INDEX_READY))
)

RETRIEVAL_KINDS = ("retriever", "retrieval", "vector_db_retrieve")
GENERATION_KINDS = ("llm", "chat", "text_completion", "generate_content", "completion")
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


@lru_cache(maxsize=16_384)
def place_of(key: str) -> tuple[str, int, int] | None:
    """Return list, index and part that a key of a list names; None for a malformed one."""
    for prefix, name in LISTS.items():
        if not key.startswith(prefix):
            continue
        index, _, rest = key[len(prefix) :].partition(".")
        part = rest.removeprefix("document.")
        if part in PARTS and index.isascii() and index.isdigit() and int(index) <= INDEX_MAX:
            return (name, int(index), PARTS.index(part))
    return None


def listed(key: str) -> bool:
    """Whether a key belongs to a list of documents."""
    return key.startswith(_PREFIXES)
