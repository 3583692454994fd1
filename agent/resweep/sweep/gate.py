"""Two systems on the same cases, and whether the second may go out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from resweep.domain.errors import UsageError
from resweep.domain.measures import MEASURES
from resweep.domain.resample import Comparison
from resweep.sweep.compare import CaseChange, Compared, Side, comparable, compare_sides
from resweep.sweep.lists import Case
from resweep.sweep.settings import SweepSettings

COMPARE_SCHEMA = "resweep.compare/1"
ALWAYS = ("recall", "all_evidence", "ndcg", "judged")
LOST_IN = "recall"  # a case is lost that has less of its evidence than before


class Gate(NamedTuple):
    """One condition with what came: `text` says both."""

    name: str
    ok: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the second system may cost: cases lost at most, and falls of measures at most.

    Both empty: nothing can fail.
    """

    max_lost: int | None = None
    max_drop: Mapping[str, float] | None = None

    def check(self) -> None:
        """Raise UsageError for a limit that cannot be meant."""
        if self.max_lost is not None and self.max_lost < 0:
            raise UsageError(f"expected --max-lost from 0, got {self.max_lost}")
        wrong = [name for name in self.max_drop or {} if name not in MEASURES]
        if wrong:
            raise UsageError(f"expected a measure among {', '.join(MEASURES)}, got `{wrong[0]}`")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compare:
    """Two systems compared, case by case. `names` and `ks` are those of before and after."""

    names: tuple[str, str]
    ks: tuple[int, int]
    results: Mapping[str, Comparison]
    lost: Sequence[CaseChange]
    gained: Sequence[CaseChange]
    gates: Sequence[Gate]
    left_out: Sequence[str]
    notes: Sequence[str] = ()

    @property
    def ok(self) -> bool:
        """Return whether every gate is passed."""
        return all(gate.ok for gate in self.gates)

    def as_dict(self) -> dict[str, Any]:
        """Return the `resweep.compare/1` object."""
        one = next(iter(self.results.values()))
        return {
            "schema": COMPARE_SCHEMA,
            "before": {"name": self.names[0], "context_k": self.ks[0]},
            "after": {"name": self.names[1], "context_k": self.ks[1]},
            "n": one.n,
            "n_effective": one.n_effective,
            "measures": {name: _result(result) for name, result in self.results.items()},
            "n_lost": len(self.lost),
            "n_gained": len(self.gained),
            "lost": [_change(change) for change in self.lost],
            "gained": [_change(change) for change in self.gained],
            "gates": [gate._asdict() for gate in self.gates],
            "ok": self.ok,
            "left_out": list(self.left_out),
            "notes": list(self.notes),
        }


def _result(result: Comparison) -> dict[str, Any]:
    return {
        "before": result.before,
        "after": result.after,
        "difference": result.difference,
        "low": result.low,
        "high": result.high,
        "fell": len(result.lost),
        "rose": len(result.gained),
        "same": result.same,
        "shown_worse": result.shown_worse(),
    }


def _change(change: CaseChange) -> dict[str, Any]:
    told = change._asdict()
    told["shown"] = [passage._asdict() for passage in change.shown]
    return told | {"passages": list(change.passages), "wanted": list(change.wanted)}


def compare_systems(
    cases: Sequence[Case],
    before: Side,
    after: Side,
    names: tuple[str, str],
    limits: Limits | None = None,
    settings: SweepSettings | None = None,
    notes: Sequence[str] = (),
) -> Compare:
    """Return two systems compared on the same cases, and which limits hold.

    Cases of the holdout take no part: looked at with every change, it would soon confirm anything. Raises
    UsageError for a measure that is not of retrieval, or where no case can be compared.
    """
    limits, settings = limits or Limits(), settings or SweepSettings()
    limits.check()
    drops = limits.max_drop or {}
    tuning = [case for case in cases if case.split != "holdout"]
    held = len(cases) - len(tuning)
    known = {case.case_id for case in comparable(tuning, before, after)}
    answerable = [case.case_id for case in tuning if case.kind == "answerable"]
    if not known.intersection(answerable):
        raise UsageError("expected judged cases with a relevant passage that both sides reach, got none")
    compared = {
        name: compare_sides(tuning, before, after, replace(settings, objective=name))
        for name in dict.fromkeys((*ALWAYS, *drops))
    }
    told = compared[LOST_IN]
    return Compare(
        names=names,
        ks=(before.k, after.k),
        results={name: one.result for name, one in compared.items()},
        lost=told.lost,
        gained=told.gained,
        gates=_gates(limits, compared),
        left_out=[case_id for case_id in answerable if case_id not in known],
        notes=[*notes, *([f"{held} cases of the holdout take no part"] if held else [])],
    )


def _gates(limits: Limits, compared: Mapping[str, Compared]) -> list[Gate]:
    gates = [_drop(name, limit, compared[name].result) for name, limit in (limits.max_drop or {}).items()]
    if limits.max_lost is None:
        return gates
    lost = len(compared[LOST_IN].lost)
    ids = ", ".join(change.case_id for change in compared[LOST_IN].lost[:10])
    more = f" and {lost - 10} more" if lost > 10 else ""
    text = f"{lost} cases lost, at most {limits.max_lost} may be{f': {ids}{more}' if lost else ''}"
    return [Gate("max_lost", lost <= limits.max_lost, text), *gates]


def _drop(name: str, limit: float, result: Comparison) -> Gate:
    """Judge a fall by whether it is shown; with fewer than ten effective cases, by the mean alone."""
    fall = -result.difference
    worse = fall > limit + 1e-12 if result.too_few else result.shown_worse(limit)
    how = "too few cases to test, so the mean decides" if result.too_few else f"{_shown(worse)} at this level"
    text = (
        f"{name} {result.before:.3f} before, {result.after:.3f} after: {result.difference:+.3f} "
        f"({result.low:+.3f} to {result.high:+.3f}); a fall of more than {limit:g} is {how}"
    )
    return Gate(f"max_drop {name}", not worse, text)


def _shown(worse: bool) -> str:
    return "shown" if worse else "not shown"


def parse_drops(texts: Sequence[str]) -> dict[str, float]:
    """Return the largest falls stated as `recall=0.02`. Raises UsageError for anything else."""
    drops = {}
    for text in texts:
        name, sign, value = text.partition("=")
        try:
            drops[name.strip()] = float(value)
        except ValueError:
            sign = ""
        if not sign or not 0 <= drops[name.strip()] <= 1:
            raise UsageError(f"expected a measure and its largest fall, as recall=0.02; got `{text}`")
    return drops
