"""What happened between index and answer: candidates, reranking, seconds of each stage, why it stopped."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from resweep.domain.values import label
from resweep.record.call import Extra
from resweep.record.passages import find
from resweep.record.watching import as_depth

RETRIEVE = "retrieve"
RERANK = "rerank"


class Stage(NamedTuple):
    """One stage that an adapter saw run inside a call: seconds, passages in (None: unknown) and result."""

    name: str
    seconds: float
    taken: int | None
    result: Any


class Staged(NamedTuple):
    """What the stages of one call come to. `scored` is an inner result that carries scores."""

    candidates: int | None = None
    reranked: int | None = None
    returned: int | None = None
    seconds: Mapping[str, float] = {}
    stop: str | None = None
    trace_id: str | None = None
    scored: Any = None


_NONE = Staged()


def staged(extra: Extra | None, said: Mapping[str, object]) -> Staged:
    """Return what is known of a call's stages: noted by the user, said by the answer, seen by an adapter."""
    if extra is None:
        return _facts(said, _NONE) if said else _NONE
    seen = _seen(extra)
    return _facts({**said, **extra.facts}, seen)


def _facts(facts: Mapping[str, object], seen: Staged) -> Staged:
    stop = facts.get("stop")
    return seen._replace(
        candidates=_depth(facts, "candidates", seen.candidates),
        reranked=_depth(facts, "reranked", seen.reranked),
        returned=_depth(facts, "returned", None),
        seconds={**seen.seconds, **_seconds(facts)},
        stop=label(stop) if isinstance(stop, str) else None,
    )


def _depth(facts: Mapping[str, object], name: str, default: int | None) -> int | None:
    value = facts.get(name)
    if type(value) is int and value == 0:
        return 0
    found = as_depth(value)
    return default if found is None else found


def _seconds(facts: Mapping[str, object]) -> dict[str, float]:
    stages = facts.get("stages")
    given = dict(stages) if isinstance(stages, Mapping) else {}
    given |= {name: value for name, value in facts.items() if name in ("rerank_s", "retrieve_s", "embed_s")}
    return {
        str(name)[:64]: float(value)
        for name, value in list(given.items())[:8]
        if isinstance(value, int | float) and math.isfinite(value) and value >= 0
    }


def _seen(extra: Extra) -> Staged:
    candidates = reranked = None
    seconds: dict[str, float] = {}
    for stage in extra.stages:
        seconds[f"{stage.name}_s"] = seconds.get(f"{stage.name}_s", 0.0) + stage.seconds
        if stage.name == RETRIEVE:
            candidates = (candidates or 0) + find(stage.result).total
        elif stage.name == RERANK and stage.taken is not None:
            reranked = (reranked or 0) + stage.taken
    trace_id = None if extra.around is None else format(extra.around.trace_id, "032x")
    return Staged(candidates, reranked, None, seconds, None, trace_id, extra.scored)
