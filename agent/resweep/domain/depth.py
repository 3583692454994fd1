"""The depths a config declares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from resweep.domain import paths
from resweep.domain.invalidation import InvalidationRules
from resweep.domain.paths import Path

Names: TypeAlias = set[tuple[str, ...]]
Found: TypeAlias = list[tuple[tuple[str, ...], int]]

_RETRIEVER_K: Names = {
    ("k",),
    ("top_k",),
    *((part, name) for part in ("retriever", "index") for name in ("k", "top_k", "similarity_top_k")),
    *(("retriever", "search_kwargs", name) for name in ("k", "top_k")),
}
_FETCH_K: Names = {
    ("fetch_k",),
    ("retriever", "fetch_k"),
    ("retriever", "search_kwargs", "fetch_k"),
    ("index", "fetch_k"),
}
_RERANKER_K: Names = {("reranker", name) for name in ("top_n", "top_k", "k")}
_NAMES = {"context_k", "candidate_k", *(steps[-1] for steps in (*_RETRIEVER_K, *_FETCH_K, *_RERANKER_K))}
_OFF = (False, 0, "", "none", "off", "false", "disabled")


def depths(
    document: Mapping[str, object], rules: InvalidationRules | None = None
) -> tuple[int | None, int | None]:
    """Return the declared (context_k, candidate_k) of a canonical document, None where it says nothing.

    `context_k` and `candidate_k` are read wherever they stand, the outermost first. Where neither stands,
    the names of frameworks are read: what a reranker keeps is context_k, what MMR fetches is candidate_k,
    and a bare retriever k is candidate_k where a reranker follows, else context_k.
    """
    rules = rules or InvalidationRules.load_default()
    found = sorted(_declared(document, (), rules), key=lambda pair: len(pair[0]))
    context, candidate = _first(found, "context_k"), _first(found, "candidate_k")
    if context is not None or candidate is not None:
        return context, candidate
    asked, fetched, reranked = (_among(found, names) for names in (_RETRIEVER_K, _FETCH_K, _RERANKER_K))
    if _reranks(document, (), rules):
        return reranked, asked if fetched is None else fetched
    return asked, fetched


def _declared(
    value: Mapping[str, object], path: Path, rules: InvalidationRules
) -> Iterator[tuple[tuple[str, ...], int]]:
    for key, item in value.items():
        here = (*path, key)
        if isinstance(item, dict):
            yield from _declared(item, here, rules)
        elif isinstance(item, int) and not isinstance(item, bool) and item > 0 and paths.snake(key) in _NAMES:
            yield rules.part_of(paths.steps(here))[1], item


def _first(found: Found, name: str) -> int | None:
    return next((depth for steps, depth in found if steps[-1] == name), None)


def _among(found: Found, names: Names) -> int | None:
    return next((depth for steps, depth in found if steps in names), None)


def _reranks(value: Mapping[str, object], path: Path, rules: InvalidationRules) -> bool:
    for key, item in value.items():
        here = (*path, key)
        if rules.part_of(paths.steps(here))[1] == ("reranker",):
            return _is_on(item)
        if isinstance(item, dict) and _reranks(item, here, rules):
            return True
    return False


def _is_on(section: object) -> bool:
    if isinstance(section, dict):
        return section.get("enabled") not in _OFF
    return section not in _OFF
