"""A small, real retrieval pipeline: chunker, embedder, exact index, retriever.

The embedders are latent semantic analysis over words or over character n-grams: two different vector
spaces of the same size, as when a provider swaps a model under the same name. They need no download.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer

from resweep.serve.demo.corpus import Document

Vectors = NDArray[np.float64]
DIMENSIONS = 128
ANALYZERS: dict[str, dict[str, Any]] = {
    "lsa-words": {"analyzer": "word", "ngram_range": (1, 1), "stop_words": "english"},
    "lsa-chars": {"analyzer": "char_wb", "ngram_range": (3, 4), "max_features": 8_000},
}


class Chunk(NamedTuple):
    """A window of words of one document."""

    id: str
    text: str
    document: str
    source: str


def chunked(documents: Sequence[Document], words: int, overlap: int) -> Iterator[Chunk]:
    """Yield windows of `words` words, `overlap` of them shared with the window before."""
    for document in documents:
        tokens = document.text.split()
        for n, start in enumerate(range(0, max(1, len(tokens) - overlap), words - overlap)):
            text = " ".join(tokens[start : start + words])
            yield Chunk(f"{document.id}#{n}", text, document.id, document.source)


class Embedder:
    """Latent semantic analysis fitted on the chunks; vectors of unit length."""

    def __init__(self, model: str, texts: Sequence[str]) -> None:
        self.model = model
        self.pipeline: Pipeline = make_pipeline(
            TfidfVectorizer(sublinear_tf=True, **ANALYZERS[model]),
            TruncatedSVD(DIMENSIONS, random_state=0),
            Normalizer(copy=False),
        )
        self.vectors: Vectors = self.pipeline.fit_transform(texts)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors, one row a text."""
        vectors: Vectors = self.pipeline.transform(texts)
        return vectors


class SupportRetriever:
    """Exact cosine search over the chunks of the support documentation."""

    def __init__(self, documents: Sequence[Document], model: str, k: int, words: int = 96) -> None:
        self.k = k
        self.chunks = list(chunked(documents, words, words // 4))
        self.embedder = Embedder(model, [c.text for c in self.chunks])

    def retrieve(self, query: str, k: int | None = None) -> list[dict[str, Any]]:
        """Return the `k` nearest chunks, best first."""
        scores = self.embedder.vectors @ self.embedder.embed([query])[0]
        best = np.argsort(-scores, kind="stable")[: k or self.k]
        return [self._hit(int(i), float(scores[i])) for i in best]

    def _hit(self, place: int, score: float) -> dict[str, Any]:
        chunk = self.chunks[place]
        return {"id": chunk.id, "text": chunk.text, "source": chunk.source, "score": score}


def config(model: str, k: int, words: int = 96) -> dict[str, Any]:
    """Return the pipeline's declared config: what its tuned k is valid for."""
    return {
        "chunker": {"kind": "window", "words": words, "overlap": words // 4},
        "embedder": {"model": model, "dimensions": DIMENSIONS},
        "index": {"kind": "exact", "metric": "cosine", "name": "support-docs"},
        "context_k": k,
        "candidate_k": k,
    }
