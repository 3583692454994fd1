"""What was decided once, when a retriever was wrapped, so that a call decides nothing."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from resweep.record.failure import Failure, classify
from resweep.record.passages import find

if TYPE_CHECKING:
    from resweep.domain.batch import ConfigRecord
    from resweep.domain.event import Hit
    from resweep.record.adapters.base import Facts
    from resweep.record.call import Call
    from resweep.record.recorder import Recorder

Capture = Literal["none", "sampled", "text"]
SEEN_LEAST = 20  # passages before anything is said to be missing
SEEN_ENOUGH = 1000  # passages looked at for the self-check
CAPTURES: tuple[Capture, ...] = ("none", "sampled", "text")

# How calls name the depth they ask for, and the question.
DEPTHS = frozenset(
    (
        "k",
        "top_k",
        "topk",
        "limit",
        "n_results",
        "similarity_top_k",
        "num_results",
        "max_results",
        "n_docs",
        "top_n",
        "context_k",
    )
)
QUERIES = (
    "query",
    "question",
    "q",
    "text",
    "input",
    "query_str",
    "query_text",
    "query_texts",
    "prompt",
    "search_query",
    "query_bundle",
    "str_or_query_bundle",
    "query_embedding",
    "query_embeddings",
    "query_vector",
    "embedding",
    "vector",
    "x",
)


class Watch:
    """One watched retriever: where its calls are counted and how its answers are read.

    `asked` is the depth asked for where a call does not say. `probe` runs the user's retriever at another
    depth. `multi` splits one call into several retrievals where a client takes many questions at once.
    """

    def __init__(
        self,
        recorder: Recorder,
        record: ConfigRecord,
        *,
        name: str,
        asked: int | None = None,
        capture: Capture = "none",
        redact: Callable[[str], str] | None = None,
        extract: Callable[[Any], Any] | None = None,
        tokens: Any = None,
        probe: Callable[..., Any] | None = None,
        user_key: Callable[..., Any] | None = None,
        static_filters: Mapping[str, object] | None = None,
        multi: Callable[[tuple[Any, ...], Mapping[str, Any], Any], list[tuple[Any, Any]]] | None = None,
    ) -> None:
        self.recorder = recorder
        self.record = record
        self.pipeline = record.pipeline
        self.config = record.config
        self.name = name
        self.asked = asked
        self.capture = capture
        self.redact = redact
        self.extract = extract
        self.tokens = tokens
        self.probe = probe
        self.user_key = user_key
        self.static_filters = static_filters
        self.multi = multi
        self.plain = extract is None and multi is None and not static_filters and recorder.spans is None
        self.sites: list[Site] = []
        self.undo: list[Callable[[], None]] = []
        self.on = True
        self.look: Callable[[], Facts | None] | None = None
        self.hold: Callable[[str, Call], None] | None = None  # keeps sampled calls, to be made again
        self.called = False
        self.seen_passages = self.seen_ids = self.seen_scores = self.seen_sources = 0

    def missing(self) -> tuple[str, ...]:
        """Return what no answer carried so far, once enough passages were looked at: ids, scores, sources."""
        if self.seen_passages < SEEN_LEAST:
            return ()
        counts = (("ids", self.seen_ids), ("scores", self.seen_scores), ("sources", self.seen_sources))
        return tuple(name for name, count in counts if count == 0)

    def renumber(self) -> None:
        """Number calls anew, in a forked child."""
        for site in self.sites:
            site.next_number = self.recorder.ids.next

    def end(self) -> None:
        """Stop recording and take back what was changed for it."""
        self.on = False
        for site in self.sites:
            site.on = site.quick = False
        for undo in reversed(self.undo):
            undo()
        self.undo.clear()

    def seen(self, hits: tuple[Hit, ...]) -> None:
        """Count what the first passages of answers carried, for the self-check."""
        if self.seen_passages < SEEN_ENOUGH:
            self.seen_passages += len(hits)
            self.seen_ids += sum(hit.id != hit.text_hash for hit in hits)
            self.seen_scores += sum(hit.score is not None for hit in hits)
            self.seen_sources += sum(hit.source is not None for hit in hits)


class Site:
    """One wrapped function of a watched retriever: its watch, and where its arguments say what."""

    __slots__ = ("default", "depth_at", "next_number", "on", "query_at", "quick", "recorder", "watch")

    def __init__(self, watch: Watch, function: object, *, skip: int = 0) -> None:
        """`skip` counts leading parameters that are bound and so not among a call's arguments."""
        self.watch = watch
        self.recorder = watch.recorder
        self.next_number = watch.recorder.ids.next
        self.on = True
        self.quick = watch.recorder.spans is None  # nothing but the call itself to note on a request
        watch.sites.append(self)
        parameters = _parameters(function)
        names = list(parameters)[skip:]
        self.default = next((parameters[name] for name in names if name in DEPTHS), None)
        self.depth_at = next((at for at, name in enumerate(names) if name in DEPTHS), None)
        self.query_at = next((at for at, name in enumerate(names) if name in QUERIES), 0)

    def asked_by(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> int | None:
        """Return the depth a call asks for: its own argument, else what holds for every call.

        The default of the function's own parameter comes last: a k lost on the way to a client falls back to
        it, and what was declared is then what was asked.
        """
        for name in kwargs:
            if name in DEPTHS:
                depth = as_depth(kwargs[name])
                if depth is not None:
                    return depth
        if self.depth_at is not None and len(args) > self.depth_at:
            depth = as_depth(args[self.depth_at])
            if depth is not None:
                return depth
        return self.default if self.watch.asked is None else self.watch.asked

    def query_of(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> object:
        """Return the question as it was passed, None where a call has none."""
        if len(args) > self.query_at:
            return args[self.query_at]
        return next((kwargs[name] for name in QUERIES if name in kwargs), None)

    def count(self, result: object) -> int:
        """Return how many passages a result holds."""
        return len(result) if isinstance(result, list) else find(result).total

    def classify(self, error: Exception) -> Failure:
        """Return the class of an exception."""
        return classify(error)


def as_depth(value: object) -> int | None:
    """Return a depth from 1 up to a million, None for anything else."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        depth = int(value.__index__())  # type: ignore[attr-defined]
    except Exception:  # noqa: BLE001 - no whole number
        return None
    return depth if 1 <= depth <= 1_000_000 else None


def _parameters(function: object) -> dict[str, int | None]:
    """The parameters of a function, each with its default where that is a depth."""
    try:
        found = inspect.signature(function).parameters  # type: ignore[arg-type]
    except (ValueError, TypeError):
        return {}
    return {name: as_depth(one.default) for name, one in found.items()}
