"""One watched retriever as work sees it: how to call it, what it can do, and whether it failed lately."""

from __future__ import annotations

import inspect
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from resweep.domain.work import Can, WorkKind
from resweep.record.call import FAILED, Call

if TYPE_CHECKING:
    from resweep.record.watching import Watch

HELD_MAX = 64  # sampled calls of one retriever whose arguments are kept for a probe
HELD_S = 900.0
REST_S = (60.0, 300.0, 1800.0, 3600.0)  # after one, two, … failures in a row


class Held(NamedTuple):
    """A sampled call, to be made again."""

    name: str
    query: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    until: float


class Hand:
    """One watched retriever as work sees it: how to call it, what it can do, and whether it failed lately."""

    def __init__(self, watch: Watch, watched: Any, names: Sequence[str], embed: Any, canaries: bool) -> None:
        self.watch = watch
        self.embed = embed
        self.canaries = canaries
        self.fixed = False  # cannot be asked for more passages
        self.trouble = ""
        self._names = tuple(names)
        self._alive = _reference(watched)
        self._held: OrderedDict[str, Held] = OrderedDict()
        self._failures = 0
        self._rests_until = 0.0
        self.probes = watch.capture != "none"
        if self.probes:
            watch.hold = self.hold

    def alive(self) -> bool:
        """Whether the retriever is still there and still watched."""
        return self.watch.on and self._alive() is not None

    def can(self) -> Can:
        """Return what this retriever can be asked to do now."""
        kinds: list[WorkKind] = []
        if self.canaries:
            kinds += ["retrieve"] if self.embed is None else ["embed", "retrieve"]
        if self.probes and not self.fixed:
            kinds.append("probe")
        record = self.watch.record
        return Can(
            pipeline=record.pipeline,
            config=record.config,
            basis=record.basis,
            kinds=tuple(kinds),
            canaries=self.canaries,
            depth="fixed" if self.fixed else "free",
            resting=monotonic() < self._rests_until,
            trouble=self.trouble,
        )

    def hold(self, event_id: str, call: Call) -> None:
        """Keep a sampled call's arguments for a while; one that failed is a sign to leave it alone.

        Called on the folding thread.
        """
        if call.state == FAILED:
            self.failed("a live retrieval failed")
            return
        name = self._name_of(call)
        if name is not None:
            self._held[event_id] = Held(
                name, call.site.query_of(call.args, call.kwargs), call.args, call.kwargs, monotonic() + HELD_S
            )
            while len(self._held) > HELD_MAX:
                self._held.popitem(last=False)

    def held(self, event_id: str | None) -> Held | None:
        """Return a call that is still kept."""
        found = self._held.pop(event_id or "", None)
        return found if found is not None and found.until > monotonic() else None

    def failed(self, trouble: str) -> None:
        """Leave the retriever alone for a while."""
        rest = REST_S[min(self._failures, len(REST_S) - 1)]
        self._failures += 1
        self._rests_until = monotonic() + rest
        self.trouble = trouble[:200]

    def worked(self) -> None:
        """Note that it answered."""
        self._failures, self.trouble = 0, ""

    def functions(self) -> list[tuple[str, Callable[..., Any]]]:
        """Return the recording functions by name, those that can be called from a thread first."""
        alive = self._alive()
        if alive is None:
            return []
        if not self._names:
            return [("", alive)]
        found = [(name, getattr(alive, name)) for name in self._names if callable(getattr(alive, name, None))]
        return sorted(found, key=lambda pair: _is_async(pair[1]))

    def _name_of(self, call: Call) -> str | None:
        for name, function in self.functions():
            if getattr(function, "__resweep_site__", None) is call.site:
                return name
        return None


def _reference(watched: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(watched)
    except TypeError:
        return lambda: watched


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
