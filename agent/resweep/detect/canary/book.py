"""All canaries of one system, and what they find: the active layer.

A system is what runs under one (pipeline, basis). Its findings follow from the state alone, so they can be
asked for at any time: after a run, after somebody accepted the system as it is, after a restart.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator

import msgspec

from resweep.detect.canary import answers, embedder, quality
from resweep.detect.canary.answers import AnswersRun, AnswersState
from resweep.detect.canary.embedder import EmbedderState
from resweep.detect.canary.quality import QualityState
from resweep.detect.finding import Finding
from resweep.domain.verdict import Component

SHELF_MAX = 4  # earlier systems whose answers are kept
SHOWN = 5  # cases named in a message
SHOWN_S = 86_400.0  # for which a renumbering stays visible


class Shelved(msgspec.Struct):
    """What retrieval canaries remember of a system that may come back."""

    answers: AnswersState
    quality: QualityState


class System(msgspec.Struct, kw_only=True):
    """What the canaries of one (pipeline, basis) remember. `config` is the one they ran on last."""

    pipeline: str
    basis: str
    config: str = ""
    embedder: EmbedderState = msgspec.field(default_factory=EmbedderState)
    answers: AnswersState = msgspec.field(default_factory=AnswersState)
    quality: QualityState = msgspec.field(default_factory=QualityState)
    run: AnswersRun | None = None  # of the retrieval canaries, the last one
    ran: dict[str, float] = msgspec.field(default_factory=dict)  # when it answered, by kind of work
    tried: dict[str, float] = msgspec.field(default_factory=dict)  # when it answered or failed
    failures: dict[str, int] = msgspec.field(default_factory=dict)  # in a row, by kind of work
    trouble: str = ""
    shelf: dict[str, Shelved] = msgspec.field(default_factory=dict)  # by the digest of its embedder

    @property
    def doubted(self) -> bool:
        """Whether the next run is worth having soon."""
        moved = self.embedder.doubt > 0.0 or self.embedder.present != self.embedder.reference
        return moved or any(g.doubted or g.is_open for g in (self.answers.gate, self.quality.gate))


def accept(system: System, ts: float) -> None:
    """Take the system as it is now for the right one (unix seconds)."""
    before = system.embedder.reference
    embedder.accept(system.embedder, ts)
    if before is not None and before != system.embedder.reference:
        last = msgspec.convert(msgspec.to_builtins(Shelved(system.answers, system.quality)), Shelved)
        _shelve(system, before)
        system.answers, system.quality = last.answers, last.quality
    answers.accept(system.answers)
    quality.accept(system.quality)


def follow(system: System, accepted: Collection[str]) -> bool:
    """Go back to what is remembered of a system that was accepted earlier and runs again; say whether."""
    state = system.embedder
    if state.present is None or state.present == state.reference or state.present not in accepted:
        return False
    if state.reference is not None:
        _shelve(system, state.reference)
    back = system.shelf.pop(state.present, None) or Shelved(AnswersState(), QualityState())
    system.answers, system.quality, system.run = back.answers, back.quality, None
    state.reference = state.present
    return True


def _shelve(system: System, digest: str) -> None:
    """Put away what was remembered under an embedder, as it was before the system changed."""
    for one in (system.answers, system.quality):
        one.gate.is_open, one.gate.above, one.gate.below, one.since_ts = False, 0, 0, None
    system.shelf[digest] = Shelved(system.answers, system.quality)
    while len(system.shelf) > SHELF_MAX:
        del system.shelf[next(iter(system.shelf))]


def findings(system: System, accepted: Collection[str] = ()) -> Iterator[Finding]:
    """Yield what the active layer finds now.

    `accepted` holds the digests of the embedders that a depth was tuned for; without any, the first one seen
    counts as the right one.
    """
    moved = _embedder(system, accepted)
    if moved is not None:
        yield moved
    else:
        yield from _answers(system)
    if moved is not None or not _ids_are_others(system):
        yield from _quality(system)


def evidence(system: System, accepted: Collection[str] = ()) -> float:
    """Return the natural log of the evidence over its threshold, the highest of all canaries."""
    change = system.embedder.change
    away = _is_moved(system.embedder, accepted)
    surprises = [
        (change.surprise if away and change is not None else system.embedder.doubt) - embedder.SURE,
        (system.run.surprise if system.run else 0.0) - answers.OPEN_AT,
    ]
    return max(surprises) * math.log(10)


def _is_moved(state: EmbedderState, accepted: Collection[str]) -> bool:
    right: set[str | None] = set(accepted) or {state.reference}
    return bool(state.baselines) and state.present not in right


def _embedder(system: System, accepted: Collection[str]) -> Finding | None:
    state, run = system.embedder, system.embedder.change
    if run is None or not _is_moved(state, accepted):
        return None
    if run.dimensions != run.expected_dimensions:
        return _other_size(system)
    texts = f"{run.moved} of {run.compared} canary texts"
    mean = "unknown" if run.mean_cosine is None else f"{run.mean_cosine:.3f}"
    return Finding(
        reason="silent_change",
        layer="active",
        config=system.config,
        basis=system.basis,
        components=("embedder",),
        severity="page",
        moves="expired",
        about="embedder",
        message=f"{system.pipeline}: embedder changed, declared config unchanged: {texts} now embed "
        f"elsewhere, mean cosine {mean} with their stored vectors; the stored passages were embedded by "
        "another model, and the tuned k has expired",
        evidence={
            "texts": run.compared,
            "moved": run.moved,
            "mean_cosine": run.mean_cosine,
            "least_cosine": run.least_cosine,
            "surprise": round(run.surprise, 1),
            "digest": state.present,
            "digest_before": state.reference,
        },
        next_command=f"resweep sweep {system.pipeline}",
        onset_ts=state.since_ts,
    )


def _other_size(system: System) -> Finding:
    run = system.embedder.change
    assert run is not None
    return Finding(
        reason="dimension_mismatch",
        layer="active",
        config=system.config,
        basis=system.basis,
        components=("embedder", "index"),
        severity="page",
        moves="expired",
        about="embedder",
        message=f"{system.pipeline}: the embedder returns vectors of {run.dimensions} dimensions, it "
        f"returned {run.expected_dimensions}, and nothing was declared; the index holds the other size, and "
        "the tuned k has expired",
        evidence={"got": run.dimensions, "expected": run.expected_dimensions, "texts": run.compared},
        next_command=f"resweep status {system.pipeline}",
        onset_ts=system.embedder.since_ts,
    )


def _answers(system: System) -> Iterator[Finding]:
    state, run = system.answers, system.run
    if run is None:
        return
    if not state.gate.is_open:
        yield from _renumbered(system, run)
        return
    found = answers.explained(state)
    if found is None:
        return
    cause, traces = found
    notice = answers.is_reingest(traces)
    components: tuple[Component, ...] = ("corpus",) if notice else cause.components
    shown = f"{run.changed} of {run.compared} canary questions"
    told = (
        f"{system.pipeline}: {shown} found new passages, all else stands: a re-ingest, larger than usual"
        if notice
        else f"{system.pipeline}: the system changed, declared config unchanged: {shown} got another answer "
        "than the one stored"
    )
    yield Finding(
        reason="silent_change",
        layer="active",
        config=system.config,
        basis=system.basis,
        components=components,
        severity="notice" if notice else "warning",
        moves=None if notice else "suspect",
        about="answers",
        message=f"{told} (up to {run.churn:.0%} may); {cause.why}",
        evidence={
            "questions": run.compared,
            "changed": run.changed,
            "usual_share": round(run.churn, 4),
            "surprise": round(run.surprise, 1),
            "ids_jaccard": round(traces.ids_jaccard, 3),
            "same_pair_moved": traces.same_pair_moved,
            "tokens_ratio": traces.tokens_ratio,
        },
        next_command=f"resweep status {system.pipeline}" if notice else f"resweep sweep {system.pipeline}",
        onset_ts=state.since_ts,
    )


def _renumbered(system: System, run: AnswersRun) -> Iterator[Finding]:
    seen = system.answers.renumbered
    if seen is None or run.ts - seen.ts > SHOWN_S:
        return
    yield Finding(
        reason="ids_renumbered",
        layer="active",
        config=system.config,
        basis=system.basis,
        components=("index",),
        severity="notice",
        about="answers",
        message=f"{system.pipeline}: {seen.renumbered} of {seen.compared} canary questions got the same "
        "passages under other ids; judgments that name passages by id do not fit them any more",
        evidence={"questions": seen.compared, "renumbered": seen.renumbered},
        next_command=f"resweep status {system.pipeline}",
        onset_ts=seen.ts,
    )


def _quality(system: System) -> Iterator[Finding]:
    state = system.quality
    if state.gate.is_open:
        yield _quality_drop(system)
    elif lost := quality.lost_cases(state):
        yield _canary_lost(system, lost)


def _ids_are_others(system: System) -> bool:
    """Whether judged passages cannot be found by their ids, so that recall says nothing about quality."""
    if system.answers.renumbered is not None:
        return True
    found = answers.explained(system.answers) if system.answers.gate.is_open else None
    return found is not None and found[0].components[0] == "chunker"


def _quality_drop(system: System) -> Finding:
    state = system.quality
    common = [id_ for id_ in state.last if id_ in state.reference]
    lost = [id_ for id_ in common if state.last[id_].recall < state.reference[id_].recall]
    before = {m: _mean(getattr(state.reference[i], m) for i in common) for m in quality.NAMES}
    now = {m: _mean(getattr(state.last[i], m) for i in common) for m in quality.NAMES}
    return Finding(
        reason="quality_drop",
        layer="active",
        config=system.config,
        basis=system.basis,
        components=_blamed(system),
        severity="page",
        about="canaries",
        message=f"{system.pipeline}: recall@{state.k} of the judged canaries fell from "
        f"{before['recall']:.2f} to {now['recall']:.2f}; {len(lost)} of {len(common)} lost evidence they had",
        evidence={"k": state.k, "cases": len(common), "lost": lost[:50], "before": before, "now": now},
        next_command=f"resweep status {system.pipeline}",
        onset_ts=state.since_ts,
    )


def _blamed(system: System) -> tuple[Component, ...]:
    found = answers.explained(system.answers) if system.answers.gate.is_open else None
    return found[0].components if found is not None else ("outcome",)


def _canary_lost(system: System, lost: list[str]) -> Finding:
    k = system.quality.k
    named = ", ".join(lost[:SHOWN]) + (f" and {len(lost) - SHOWN} more" if len(lost) > SHOWN else "")
    return Finding(
        reason="canary_lost",
        layer="active",
        config=system.config,
        basis=system.basis,
        components=("outcome",),
        severity="notice",
        about="canaries",
        message=f"{system.pipeline}: {len(lost)} judged canaries no longer find all they found at k = {k}: "
        f"{named}",
        evidence={"k": k, "lost": lost[:50]},
        next_command=f"resweep status {system.pipeline}",
    )


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return round(sum(known) / len(known), 4) if known else 0.0
