"""A live retriever as a sweep asks it: at any depth, off the record, its answer as a ranked list."""

from __future__ import annotations

import asyncio
import copy
import inspect
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from resweep.domain.errors import UsageError
from resweep.record.hits import Hits
from resweep.record.passages import find
from resweep.record.reading import read
from resweep.record.tokens import Tokens
from resweep.record.watching import QUERIES
from resweep.serve.named import ASKS
from resweep.sweep.lists import RankedList
from resweep.sweep.runner import Question, Target

# How functions and objects name the passages they return, and those they choose from; the first found is it.
CONTEXT = (
    "context_k",
    "k",
    "top_k",
    "topk",
    "similarity_top_k",
    "n_results",
    "num_results",
    "max_results",
    "n_docs",
    "limit",
    "top_n",
)
CANDIDATES = (
    "candidate_k",
    "fetch_k",
    "candidates",
    "n_candidates",
    "num_candidates",
    "rerank_depth",
    "rerank_k",
)
# Where a filter goes that is keys and values; expressions of a client's own cannot be made again.
FILTERED = ("filters", "filter", "where", "metadata_filter", "metadata_filters")
_METHODS = (*ASKS, "get_relevant_documents", "ainvoke", "aretrieve", "asearch", "__call__")


class Live:
    """One retriever. How it is asked, and where it takes its depths, is decided once, here.

    A depth goes to a parameter of the function, else into `search_kwargs` or an attribute of a copy of the
    object: the object itself stays as it is. Raises UsageError for what cannot be asked.
    """

    def __init__(self, retriever: Any) -> None:
        self._object = retriever
        self._method = _method(retriever)
        function = self._function(retriever)
        parameters = _parameters(function)
        self._query = _query_name(parameters)
        self.context = _place(retriever, parameters, CONTEXT)
        self.candidates = _place(retriever, parameters, CANDIDATES)
        self.filters = _filter_place(retriever, parameters)
        self._made: dict[tuple[int, int | None, str], Callable[[str], Any]] = {}
        self._local = threading.local()
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def target(self, version: str, *, grid: bool = False) -> Target:
        """Return what the sweep asks. Raises UsageError for a grid where candidates cannot be asked for."""
        if grid and self.candidates is None:
            raise UsageError(
                f"expected a retriever that takes {CANDIDATES[0]} (or {', '.join(CANDIDATES[1:4])}), got one "
                "that takes none: add the parameter, or sweep context_k alone"
            )
        return Target(ask=self.ask, version=version, takes_depth=self.context is not None)

    def ask(self, question: Question) -> RankedList:
        """Return what the retriever answers, in rank order."""
        at = (question.context_k, question.candidate_k, repr(question.filters))
        with self._lock:
            if at not in self._made:
                if len(self._made) >= _MADE_MOST:  # as many as tenants: a copy of the retriever each
                    self._made.clear()
                self._made[at] = self._at(question)
            call = self._made[at]
        return self._listed(self._complete(call(question.query)), question.query)

    def _at(self, question: Question) -> Callable[[str], Any]:
        """Return the function that asks at the question's depths, under its filters."""
        kwargs: dict[str, Any] = {}
        settings: dict[str, Any] = {}
        filters = dict(question.filters) if question.filters else None
        if filters and self.filters is None:
            raise UsageError(
                f"the question was asked under a filter on {', '.join(sorted(filters))}, and this retriever "
                "takes none: name one that takes `filters`, or leave such cases out"
            )
        for place, value in (
            (self.context, question.context_k),
            (self.candidates, question.candidate_k),
            (self.filters, filters),
        ):
            if place is not None and value is not None:
                (kwargs if place[0] == "parameter" else settings)[place[1]] = value
        function = self._function(_changed(self._object, settings) if settings else self._object)
        named = self._query
        if named is None:
            return lambda query: function(query, **kwargs)
        return lambda query: function(**{named: query}, **kwargs)

    def _function(self, retriever: Any) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(retriever, self._method) if self._method else retriever
        return found

    def _complete(self, answer: Any) -> Any:
        """Return an answer that is all there: coroutines run on one loop, iterators read to their end."""
        if inspect.isawaitable(answer) or inspect.isasyncgen(answer):
            return asyncio.run_coroutine_threadsafe(_settled(answer), self._running()).result()
        return list(answer) if isinstance(answer, Iterator) else answer

    def _running(self) -> asyncio.AbstractEventLoop:
        """Return the loop on which all coroutines run: an async client belongs to one loop."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, daemon=True).start()
            return self._loop

    def _listed(self, answer: Any, query: str) -> RankedList:
        reader = self._reader()
        passages = find(answer).passages
        hits, _ = reader.of(passages)
        reader.restart()
        texts = [read(passage).text for passage in passages]
        return RankedList(
            ids=[hit.id for hit in hits],
            scores=[hit.score for hit in hits],
            sources=[hit.source for hit in hits],
            tokens=[hit.tokens for hit in hits],
            text_hashes=[hit.text_hash for hit in hits] if any(hit.text_hash for hit in hits) else (),
            query=query,
            texts=[text if isinstance(text, str) else None for text in texts],
        )

    def _reader(self) -> Hits:
        if not hasattr(self._local, "hits"):
            self._local.hits = Hits(Tokens())
        reader: Hits = self._local.hits
        return reader


_MADE_MOST = 10_000
Place = tuple[str, str]  # parameter, search_kwargs or attribute, and its name


def _method(retriever: Any) -> str:
    """Return the name of the method that retrieves, "" for a function."""
    if inspect.isroutine(retriever):
        return ""
    for name in _METHODS:
        if callable(getattr(retriever, name, None)):
            return name
    raise UsageError(
        f"expected something that retrieves; got {type(retriever).__qualname__}: name a function, or an "
        "object with a method invoke, retrieve or search"
    )


def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (ValueError, TypeError):
        return {}


def _query_name(parameters: Mapping[str, inspect.Parameter]) -> str | None:
    """Return the keyword of the question where it does not go first."""
    named = [p for p in parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    found = next((p for p in named if p.name in QUERIES), None)
    first = named[0] if named else None
    if found is None or (found is first and found.kind is not inspect.Parameter.KEYWORD_ONLY):
        return None
    return found.name


def _place(
    retriever: Any, parameters: Mapping[str, inspect.Parameter], names: tuple[str, ...]
) -> Place | None:
    """Return where a depth goes; None where the retriever takes none."""
    settings = getattr(retriever, "search_kwargs", None)
    if isinstance(settings, Mapping):
        known = next((name for name in names if name in settings), None)
        return ("search_kwargs", known or ("k" if names is CONTEXT else "fetch_k"))
    for name in names:
        if name in parameters:
            return ("parameter", name)
    for name in (*names, *(f"_{name}" for name in names)):
        value = getattr(retriever, name, None)
        if isinstance(value, int) and not isinstance(value, bool):
            return ("attribute", name)
    return None


def _filter_place(retriever: Any, parameters: Mapping[str, inspect.Parameter]) -> Place | None:
    """Return where keys and values of a filter go; None where the retriever takes none."""
    named = next((name for name in FILTERED if name in parameters), None)
    if named is not None:
        return ("parameter", named)
    if isinstance(getattr(retriever, "search_kwargs", None), Mapping):
        return ("search_kwargs", "filter")
    return None


def _changed(retriever: Any, settings: Mapping[str, Any]) -> Any:
    """Return a copy of a retriever with these depths and filters; the retriever itself stays as it is."""
    held = getattr(retriever, "search_kwargs", None)
    changed = {"search_kwargs": {**held, **settings}} if isinstance(held, Mapping) else dict(settings)
    if hasattr(retriever, "model_copy"):  # pydantic
        return retriever.model_copy(update=changed)
    other = copy.copy(retriever)
    for name, value in changed.items():
        setattr(other, name, value)
    return other


async def _settled(answer: Any) -> Any:
    if inspect.isasyncgen(answer):
        return [part async for part in answer]
    return await answer
