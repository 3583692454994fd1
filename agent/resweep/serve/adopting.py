"""From a report to the record of a tuned depth: what the sweep chose, and what the choice stands on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from resweep.domain.errors import UsageError
from resweep.domain.fingerprint import depths
from resweep.domain.verdict import TunedK

WEAK_CASES = 20
SLICES, LEAST_SLICE = 8, 10  # critical ones, then the weakest of those with so many cases


def swept_facts(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of `TunedK` that a `resweep.report/1` object decides, depths included.

    Raises UsageError where the sweep chose nothing.
    """
    chosen = report["chosen"]
    if chosen["context_k"] is None:
        raise UsageError(f"the report chose no depth: {chosen['why']}")
    grid = bool(report["methods"].get("grid"))
    return {
        "context_k": chosen["context_k"],
        "candidate_k": chosen["candidate_k"] if grid else None,
        "best_set": tuple(report["best_set"]),
        "objective": report["objective"],
        "constraints": {"text": report["constraints"]} if report["constraints"] else {},
        "labelled_set": {**report["labelled_set"], "effective": round(report["n_effective"], 1)},
        "grid": _grid(report),
        "slices": _slices(report),
        "weak_cases": weak_cases(report),
        "report": report["report_id"],
        "judge": _judge(report.get("answers")),
    }


def _judge(answers: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return who judged the answers, and how far that was audited; empty without answers."""
    if answers is None:
        return {}
    told = {name: answers["judge"][name] for name in ("name", "version")} | {"rubric": answers["rubric"]}
    audited = answers["audit"]
    if audited is not None:
        told["audit"] = {
            "n": audited["n"],
            "agreement": round(audited["agreement"]["mean"], 4),
            "net_bias": round(audited["net_bias"]["net"], 4),
            "valid_until": audited["valid_until"],
        }
    return told


def _grid(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was swept in brief: the depths, and the objective at each of them."""
    measured = [point for point in report["points"] if point["state"] == "measured"]
    several = len({point["candidate_k"] for point in measured}) > 1
    told: dict[str, Any] = {"margin": report["margin"]}
    for point in measured:
        name = f"{point['candidate_k']}x{point['context_k']}" if several else str(point["context_k"])
        mean = point["measures"][report["objective"]]["mean"]
        told[name] = None if mean is None else round(mean, 4)
    return told


def _slices(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the critical slices, then the weakest at the chosen depth: n and recall."""
    chosen = report["chosen"]
    told = []
    for part in report["slices"]:
        at = next(
            (
                p
                for p in part["points"]
                if (p["context_k"], p["candidate_k"]) == (chosen["context_k"], chosen["candidate_k"])
            ),
            None,
        )
        recall = at["measures"]["recall"]["mean"] if at else None
        if part["critical"] or (recall is not None and part["n"] >= LEAST_SLICE):
            told.append((not part["critical"], 0.0 if recall is None else recall, part, recall))
    told.sort(key=lambda one: one[:2])
    return {
        f"{part['name']}={part['value']}": {
            "n": part["n"],
            "recall": None if recall is None else round(recall, 4),
        }
        for _, _, part, recall in told[:SLICES]
    }


def weak_cases(report: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the cases that lose by the choice, worst first, at most 20."""
    return tuple(one["case_id"] for one in report["regressions"][:WEAK_CASES])


def acceptance_of(report: Mapping[str, Any], k: int | None, candidate_k: int | None) -> dict[str, object]:
    """Return the wish to accept what a report chose, or another depth of its best set.

    Raises UsageError where it chose nothing, or where the depth is not in the best set.
    """
    facts = swept_facts(report)
    chosen_k, chosen_candidates = facts.pop("context_k"), facts.pop("candidate_k")
    if k is not None and k not in facts["best_set"]:
        raise UsageError(
            f"expected a depth of the report's best set ({', '.join(map(str, facts['best_set']))}), got {k}: "
            "state another one without --report"
        )
    return {
        "context_k": chosen_k if k is None else k,
        "candidate_k": chosen_candidates if candidate_k is None else candidate_k,
        "swept": {
            **facts,
            "basis": report["basis_hash"],
            "parts": report["measured"].get("parts"),
        },
    }


def lock_entry(
    report: Mapping[str, Any], *, by: str, now: float, because: str = "", until: float | None = None
) -> TunedK:
    """Return the record that a report makes for the pipeline and basis it was measured for.

    Raises UsageError where the report names none, or chose nothing.
    """
    pipeline, basis = report["pipeline"], report["basis_hash"]
    if pipeline is None or basis is None:
        raise UsageError(
            "expected a report for a pipeline and a basis, got one without: sweep with --config FILE "
            "(`pipeline` and `config`)"
        )
    facts = swept_facts(report)
    record = TunedK(
        pipeline=pipeline,
        basis=basis,
        parts=report["measured"].get("parts") or {},
        tuned_at=report["made_at"] or now,
        tuned_by=by,
        because=because or in_short(report),
        valid_until=until,
        **facts,
    )
    return record if record.candidate_k else replace(record, candidate_k=own_candidates(record))


def own_candidates(record: TunedK) -> int | None:
    """Return the candidate depth that a config declares, where it goes with the depth that was chosen.

    One that is the context depth by another name, or too small for the new depth, is no choice to record.
    """
    context_k, candidate_k = depths(record.parts)
    if candidate_k is None or candidate_k == context_k or candidate_k < record.context_k:
        return None
    return candidate_k


def in_short(report: Mapping[str, Any]) -> str:
    """Return in one line why this depth."""
    depths = ", ".join(map(str, report["best_set"]))
    by = f"{report['n_cases']} cases by {report['objective']}"
    return f"sweep {report['report_id']}: {by}, best set {depths}"
