"""The user's embedder: found in a retriever where it has the usual names, asked for one text."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any

from resweep.record.adapters.base import EMBEDDERS, INDEXES
from resweep.record.asked import complete

# As a live question is embedded, not as a passage: some models tell the two apart.
_METHODS = ("embed_query", "get_query_embedding", "get_text_embedding", "encode", "embed")


def embedder_of(retriever: Any) -> Callable[[str], Any] | None:
    """Return what embeds a text for a retriever, None where nothing in it looks like that."""
    for holder in (retriever, *(getattr(retriever, name, None) for name in INDEXES)):
        for name in EMBEDDERS:
            embedder = getattr(holder, name, None)
            found = next((m for m in _METHODS if callable(getattr(embedder, m, None))), None)
            if found is not None:
                return getattr(embedder, found)  # type: ignore[no-any-return]
    return None


def embed_with(embed: Callable[[str], Any], text: str) -> tuple[float, ...]:
    """Return the vector of a text. Raises ValueError for what is none."""
    vector = complete(embed(text))
    vector = vector.tolist() if hasattr(vector, "tolist") else vector
    while isinstance(vector, list | tuple) and len(vector) == 1 and isinstance(vector[0], list | tuple):
        vector = vector[0]
    values = tuple(float(x) for x in vector)
    if not values or not all(map(isfinite, values)):
        raise ValueError(f"expected a vector of finite numbers; got {len(values)} values")
    return values
