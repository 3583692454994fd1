"""The embedder canary: fixed texts through the live embedder, compared with vectors stored earlier.

Never new with new: a rotation of the space keeps every cosine among the new vectors. A *baseline* is one
embedder as it was first seen, and its digest names it. Each run asks which baseline it matches: the one in
use (all is well), an earlier one (a rollback), or none (another embedder under the same name).
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from math import isfinite, sqrt

import msgspec

from resweep.detect.canary.chance import learnt, surprise

LEAST = 3  # texts that must come back, before anything is said
KNOWN_MAX = 8  # baselines remembered, the least lately seen go first
LEARN_RUNS = 3
FIRST_TOLERANCE = 0.005  # 1 - cosine of a text that counts as moved, before the noise is learnt
LEAST_TOLERANCE = 0.001  # and afterwards, if the noise is smaller
LARGEST_TOLERANCE = 0.02  # however noisy
OVER_NOISE = 10.0  # times the largest distance seen in quiet runs
JITTER = (0.05, 20.0, 0.2)  # share of texts that may move by chance: prior, its weight in texts, most
SURE = 6.0  # surprise at which a run, or runs in a row together, say that the embedder is another
DOUBT = 3.0  # surprise above which a run does not match
WHOLE = 0.8  # share of texts moved from which the new vectors are one embedder, not a mixture of two


class Baseline(msgspec.Struct):
    """One embedder as it was first seen: unit vectors as float32, by text id. Times are unix seconds."""

    digest: str
    dimensions: int
    vectors: dict[str, bytes]
    first_ts: float
    last_ts: float


class EmbedderRun(msgspec.Struct, frozen=True, kw_only=True):
    """What one run showed against the baseline in use: texts compared and moved, cosines, sizes.

    `surprise` is -log10 of the chance of so many moved texts, or more, if only jitter were at work.
    """

    ts: float
    compared: int
    moved: int = 0
    mean_cosine: float | None = None
    least_cosine: float | None = None
    dimensions: int = 0
    expected_dimensions: int = 0
    surprise: float = 0.0
    digest: str | None = None


class EmbedderState(msgspec.Struct):
    """What is remembered of one embedder. `present` is the baseline it matched last; None: no known one."""

    baselines: list[Baseline] = msgspec.field(default_factory=list)
    reference: str | None = None  # the baseline that was there first, or was accepted
    present: str | None = None
    since_ts: float = 0.0  # since when the present one is there
    last: dict[str, bytes] = msgspec.field(default_factory=dict)  # vectors of the last run
    noise: float = 0.0  # largest distance of an unmoved text in a quiet run
    quiet_runs: int = 0
    jittered: int = 0
    seen: int = 0  # texts compared in quiet runs
    doubt: float = 0.0  # surprise added up over runs in a row that match nothing
    change: EmbedderRun | None = None  # the run that showed the present embedder first

    def baseline(self, digest: str | None) -> Baseline | None:
        """Return the baseline of a digest."""
        return next((b for b in self.baselines if b.digest == digest), None)

    @property
    def tolerance(self) -> float:
        """The distance (1 - cosine) from which a text counts as moved."""
        if self.quiet_runs < LEARN_RUNS:
            return FIRST_TOLERANCE
        return min(LARGEST_TOLERANCE, max(LEAST_TOLERANCE, OVER_NOISE * self.noise))


class Likeness(msgspec.Struct, frozen=True):
    """Cosines of a run with one baseline's vectors, by text."""

    cosines: tuple[float, ...]
    moved: int
    surprise: float


def look(state: EmbedderState, vectors: Mapping[str, Sequence[float]], ts: float) -> EmbedderRun:
    """Take one run's vectors by text id; return what it showed and bring the state up to date."""
    units = {id_: unit for id_, vector in vectors.items() if (unit := unit_vector(vector)) is not None}
    size = _common_size(units)
    units = {id_: unit for id_, unit in units.items() if len(unit) == size}
    if len(units) < LEAST:
        return EmbedderRun(ts=ts, compared=len(units))
    state.last = {id_: unit.tobytes() for id_, unit in units.items()}
    before = state.baseline(state.present) or state.baseline(state.reference)
    if before is None:
        _begin(state, units, ts)
        return EmbedderRun(ts=ts, compared=0, dimensions=size, expected_dimensions=size, digest=state.present)
    shown, was = likeness(before, units, state), state.present
    _settle(state, units, ts, size, before, shown)
    run = _run(state, ts, size, before, shown)
    if state.present != was:
        state.change = run
    return run


def accept(state: EmbedderState, ts: float) -> None:
    """Take the embedder as it is now for the right one."""
    if state.present is None and state.last:
        units = {id_: _floats(packed) for id_, packed in state.last.items()}
        _remember(state, units, ts)
    state.reference, state.doubt = state.present, 0.0


def unit_vector(vector: Sequence[float]) -> array[float] | None:
    """Return a vector of length 1 as float32, None for one that has no direction."""
    values = [float(x) for x in vector]
    length = sqrt(sum(x * x for x in values))
    if not values or not isfinite(length) or length == 0.0:
        return None
    return array("f", [x / length for x in values])


def likeness(baseline: Baseline, units: Mapping[str, array[float]], state: EmbedderState) -> Likeness:
    """Compare a run with a baseline; vectors of another size have nothing in common."""
    common = [id_ for id_ in units if id_ in baseline.vectors]
    if not common:
        return Likeness((), 0, 0.0)
    if len(units[common[0]]) != baseline.dimensions:
        return Likeness((), len(common), surprise(len(common), len(common), _jitter(state)))
    cosines = tuple(_cosine(units[id_], _floats(baseline.vectors[id_])) for id_ in common)
    moved = sum(1 - cosine > state.tolerance for cosine in cosines)
    return Likeness(cosines, moved, surprise(len(common), moved, _jitter(state)))


def _settle(
    state: EmbedderState,
    units: Mapping[str, array[float]],
    ts: float,
    size: int,
    before: Baseline,
    shown: Likeness,
) -> None:
    """Decide which embedder this is."""
    if shown.surprise < DOUBT and size == before.dimensions:
        _matched(state, before, units, shown, ts)
        return
    other = _match(state, units, size)
    if other is not None:
        _matched(state, other[0], units, other[1], ts)
        return
    state.doubt += shown.surprise
    if state.doubt < SURE and size == before.dimensions:
        return
    if state.present is not None or shown.moved >= WHOLE * len(units):
        state.since_ts = ts
    state.present = None
    if shown.moved >= WHOLE * len(units):
        _remember(state, units, ts)


def _match(
    state: EmbedderState, units: Mapping[str, array[float]], size: int
) -> tuple[Baseline, Likeness] | None:
    """Return the earlier baseline that a run matches, the one seen last first."""
    for baseline in sorted(state.baselines, key=lambda b: -b.last_ts):
        common = sum(id_ in baseline.vectors for id_ in units)
        if baseline.dimensions == size and common >= LEAST:
            shown = likeness(baseline, units, state)
            if shown.surprise < DOUBT:
                return baseline, shown
    return None


def _matched(
    state: EmbedderState, baseline: Baseline, units: Mapping[str, array[float]], shown: Likeness, ts: float
) -> None:
    """Note that a run is this baseline, and learn how much it jitters."""
    if state.present != baseline.digest:
        state.since_ts = ts
    state.present, state.doubt, baseline.last_ts = baseline.digest, 0.0, ts
    if state.quiet_runs < LEARN_RUNS:  # only then: a floor that kept rising would hide a slow change
        state.noise = max([state.noise, *(1 - c for c in shown.cosines if 1 - c <= state.tolerance)])
    state.jittered += shown.moved
    state.seen += len(shown.cosines)
    state.quiet_runs += 1
    for id_, unit in units.items():
        baseline.vectors.setdefault(id_, unit.tobytes())


def _begin(state: EmbedderState, units: Mapping[str, array[float]], ts: float) -> None:
    _remember(state, units, ts)
    state.reference = state.present


def _remember(state: EmbedderState, units: Mapping[str, array[float]], ts: float) -> None:
    """Store vectors as a baseline, the present one."""
    packed = {id_: unit.tobytes() for id_, unit in units.items()}
    size = len(next(iter(units.values())))
    state.present, state.since_ts, state.doubt = digest_of(packed), ts, 0.0
    kept = sorted(state.baselines, key=lambda b: (b.digest == state.reference, b.last_ts))
    del kept[: max(0, len(kept) - KNOWN_MAX + 1)]
    state.baselines = [*kept, Baseline(state.present, size, packed, ts, ts)]


def digest_of(vectors: Mapping[str, bytes]) -> str:
    """Return the name of a baseline: 16 hex digits of its vectors as they were first stored."""
    whole = blake2b(digest_size=8)
    for id_ in sorted(vectors):
        whole.update(id_.encode() + b"\x00" + vectors[id_])
    return whole.hexdigest()


def _run(state: EmbedderState, ts: float, size: int, before: Baseline, shown: Likeness) -> EmbedderRun:
    cosines = shown.cosines
    return EmbedderRun(
        ts=ts,
        compared=max(len(cosines), shown.moved),
        moved=shown.moved,
        mean_cosine=sum(cosines) / len(cosines) if cosines else None,
        least_cosine=min(cosines, default=None),
        dimensions=size,
        expected_dimensions=before.dimensions,
        surprise=shown.surprise,
        digest=state.present,
    )


def _jitter(state: EmbedderState) -> float:
    return learnt(state.jittered, state.seen, *JITTER)


def _common_size(units: Mapping[str, array[float]]) -> int:
    """The vector size that most texts came back with."""
    sizes = [len(unit) for unit in units.values()]
    return max(sizes, key=sizes.count, default=0)


def _floats(packed: bytes) -> array[float]:
    values = array("f")
    values.frombytes(packed)
    return values


def _cosine(a: Sequence[float], b: Sequence[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))
