"""The report as one HTML page: what the template is given, and the template filled in."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from resweep.serve.report import words
from resweep.serve.report.charts import NARROW, SMALL, WIDE, Chart, Plan, Series, Value, draw
from resweep.sweep.evidence import USEFULNESS

SHOWN_REGRESSIONS = 50
FIRST_FINDINGS = 5  # the rest unfolds
SHOWN_SLICES, LEAST_SLICE = 40, 5  # cases; smaller ones are in the JSON, unless they are critical
_X = "context_k: passages that reach the prompt (log scale where depths span much)"
FELT_S = 0.02  # a call faster than this at every depth has no curve worth looking at
Json = Mapping[str, Any]
_SPENT = ("prompt_tokens", "cost_usd", "latency_p50_s", "latency_p95_s")


def render(report: Json) -> str:
    """Return a `resweep.report/1` object as one page that needs nothing else."""
    return _environment().get_template("report.html.j2").render(page=view(report))


@lru_cache(maxsize=1)
def _environment() -> Environment:
    env = Environment(
        loader=PackageLoader("resweep.serve.report", "templates"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.globals["w"] = words
    env.globals["style"] = (files("resweep.serve.report") / "templates" / "style.css").read_text("utf-8")
    return env


def view(report: Json) -> dict[str, Any]:
    """Return what the template shows, from a report."""
    row = _row(report)
    return {
        "report": report,
        "title": _title(report),
        "facts": _facts(report, row),
        "main": _both(_main_plan(report, row)),
        "findings": [words.titled(found["code"], found["text"]) for found in report["diagnosis"]],
        "first_findings": FIRST_FINDINGS,
        "columns": _columns(report),
        "rows": [_table_row(point, report) for point in report["points"]],
        "closed_book": _closed_book(report),
        "spent": [name for name in _SPENT if any(point[name] is not None for point in report["points"])],
        "grid": _grid(report),
        "tokens": _small(_cost_plan(report, row)),
        "latency": _small(_latency_plan(report, row)),
        "slices": _slices(report),
        "lost": report["regressions"][:SHOWN_REGRESSIONS],
        "rules": report["rules"],
        "methods": _methods(report),
    }


def _row(report: Json) -> list[Json]:
    """Return the measured points of the chosen candidate depth, else the deepest, by context depth."""
    measured = [point for point in report["points"] if point["state"] == "measured"]
    depth = report["chosen"]["candidate_k"] or max((p["candidate_k"] for p in measured), default=0)
    return sorted((p for p in measured if p["candidate_k"] == depth), key=lambda p: int(p["context_k"]))


def _title(report: Json) -> str:
    when, k = words.day(report["made_at"]), report["chosen"]["context_k"]
    of = f" of {when}" if when else ""
    return f"Sweep{of}: {report['pipeline'] or 'recorded lists'}, " + (f"k = {k}" if k else "no depth chosen")


def _facts(report: Json, row: Sequence[Json]) -> list[tuple[str, str, str]]:
    """Return (name, value, note) of the five facts at the top."""
    chosen, level = report["chosen"], 100 * (1 - report["methods"]["alpha"])
    at = next((point for point in row if point["context_k"] == chosen["context_k"]), None)
    several = len({point["candidate_k"] for point in report["points"]}) > 1
    value = "none" if at is None else f"context_k {chosen['context_k']}"
    if at is not None and several:
        value += f", candidate_k {chosen['candidate_k']}"
    within = f", by more than {report['margin']:g}" if report["margin"] else ""
    return [
        ("Chosen", value, _score(report, at)),
        (
            "Not distinguishable from the best",
            words.listed(report["best_set"]) or "no data",
            f"{level:g} %, all depths compared at once{within}",
        ),
        _why(report),
        _holdout(report),
        _cases(report),
    ]


def _score(report: Json, at: Json | None) -> str:
    if at is None:
        return "no depth meets the constraints"
    found = at["measures"][report["objective"]]
    name = words.name_of(report["objective"])
    told = f"{name} {words.percent(found['mean'])} % ({words.percent(found['low'])} to "
    told += f"{words.percent(found['high'])})"
    return told if at["prompt_tokens"] is None else f"{told}, {words.number(at['prompt_tokens'])} tokens"


def _why(report: Json) -> tuple[str, str, str]:
    """Return why this depth and not the one before it in the best set."""
    chosen, k = report["chosen"], report["chosen"]["context_k"]
    smaller = [depth for depth in report["best_set"] if k is not None and depth < k]
    parts = str(chosen["why"]).split("; ")
    if k is None:
        return ("Why none", report["constraints"] or "no data", parts[-1])
    if smaller:
        passed = next((part for part in parts if "passed over" in part), parts[-1])
        return (f"Why {k} and not {smaller[-1]}", report["constraints"] or "the smallest allowed", passed)
    note = (
        f"within {report['margin']:g} of the best mean" if report["margin"] else "fewest tokens for the same"
    )
    return (f"Why {k}", "the smallest of the best set", note)


def _holdout(report: Json) -> tuple[str, str, str]:
    held = report["holdout"]
    if held is None:
        told = (
            f"{report['n_holdout']} cases, not looked at" if report["n_holdout"] else "the set has no split"
        )
        return ("Holdout", "none", told)
    says = {True: "agrees", False: "disagrees", None: "too few to tell"}[held["agrees"]]
    score = words.percent(held["score"]["mean"])
    return (
        "Holdout",
        f"{score} % at {report['chosen']['context_k']}",
        f"{held['n']} other cases; look {held['look']} of {held['looks_allowed']}; {says}",
    )


def _cases(report: Json) -> tuple[str, str, str]:
    counted = [
        f"{report['n_excluded_unjudged']} unjudged",
        f"{report['n_missing']} missing",
        f"{report['n_unanswerable']} unanswerable",
    ]
    weighted = "weighted to the traffic" if report["weighted"] else "all of equal weight"
    value = f"{report['n_cases']:,}, effective {report['n_effective']:,.0f}"
    return ("Cases", value, f"{', '.join(counted)}; {weighted}")


def _curve(row: Sequence[Json], measure: str) -> list[Value]:
    found = [(point["context_k"], point["measures"].get(measure)) for point in row]
    return [Value(k, m["mean"], m["low"], m["high"]) for k, m in found if m and m["mean"] is not None]


def _main_plan(report: Json, row: Sequence[Json]) -> Plan | None:
    """Return recall beside answers where there are any, else beside the objective."""
    answers = any("answer_accuracy" in point["measures"] for point in row)
    other = "answer_accuracy" if answers else report["objective"]
    names = list(dict.fromkeys(("recall", other)))
    curves = [(name, _curve(row, name)) for name in names]
    curves = [(name, values) for name, values in curves if values]
    if not curves:
        return None
    says = words.finding([(n, [(v.k, v.mean) for v in values]) for n, values in curves], report)
    return Plan(
        series=[Series(words.name_of(name), values) for name, values in curves],
        says=says,
        x_title=_X,
        y_title="Share of cases or of evidence (%)" if answers else "Mean over cases (%)",
        write=_percent_sign,
        chosen=report["chosen"]["context_k"],
        best=report["best_set"],
        most=1.0,
    )


def _percent_sign(share: float) -> str:
    return f"{100 * share:.1f}".removesuffix(".0") + " %"


def _cost_plan(report: Json, row: Sequence[Json]) -> Plan | None:
    """Return what a depth costs: money where a price was given, else tokens."""
    name = "cost_usd" if any(point["cost_usd"] is not None for point in row) else "prompt_tokens"
    values = [Value(point["context_k"], point[name]) for point in row if point[name] is not None]
    if len(values) < 2:
        return None
    return Plan(
        series=[Series("Cost" if name == "cost_usd" else "Tokens", values)],
        says="Cost follows tokens" if name == "cost_usd" else "What each depth sends",
        x_title="context_k (passages)",
        y_title="USD per answer" if name == "cost_usd" else "Prompt tokens per question",
        write=words.usd if name == "cost_usd" else words.number,
        chosen=report["chosen"]["context_k"],
        zero=True,
        log=False,
    )


def _latency_plan(report: Json, row: Sequence[Json]) -> Plan | None:
    which = "p95" if sum(p["latency_p95_s"] is not None for p in row) > 1 else "p50"
    name = f"latency_{which}_s"
    values = [Value(p["context_k"], p[name]) for p in row if p[name] is not None]
    if len(values) < 2 or max(value.mean for value in values) < FELT_S:
        return None
    codes = {found["code"] for found in report["diagnosis"]}
    knee = "Time has a knee" if "latency_knee" in codes else "Time: no knee"
    known = codes & {"latency_knee", "no_latency_knee"}
    return Plan(
        series=[Series(which, values)],
        says=knee if known else "Time at each depth",
        x_title="context_k (passages)",
        y_title=f"Time of a call, {which}",
        write=words.seconds,
        chosen=report["chosen"]["context_k"],
        zero=True,
        log=False,
    )


def _both(plan: Plan | None) -> tuple[Chart, Chart] | None:
    return None if plan is None else (draw(plan, WIDE), draw(plan, NARROW))


def _small(plan: Plan | None) -> Chart | None:
    return None if plan is None else draw(plan, SMALL)


def _columns(report: Json) -> list[str]:
    """Return the measures that the table shows, the objective with its interval."""
    known = {name for point in report["points"] for name in point["measures"]}
    wanted = (
        "recall",
        "all_evidence",
        "answer_accuracy",
        report["objective"],
        "context_precision",
        USEFULNESS,
    )
    return [name for name in dict.fromkeys(wanted) if name in known]


def _table_row(point: Json, report: Json) -> dict[str, Any]:
    chosen = report["chosen"]
    at = [point["candidate_k"], point["context_k"]]
    if point["state"] != "measured":
        result = "impossible" if point["state"] == "impossible" else point["why"]
    elif at == [chosen["candidate_k"], chosen["context_k"]]:
        result = "chosen"
    else:
        result = "in the best set" if at in report["best_cells"] else "shown worse"
    return {"point": point, "result": result, "chosen": result == "chosen"}


def _grid(report: Json) -> dict[str, Any] | None:
    """Return the grid of the objective, a row for each candidate depth; None for one candidate depth."""
    points = report["points"]
    candidates = sorted({point["candidate_k"] for point in points})
    if len(candidates) < 2:
        return None
    ks = sorted({point["context_k"] for point in points})
    states = {(point["candidate_k"], point["context_k"]): point["state"] for point in points}
    means = {
        (point["candidate_k"], point["context_k"]): point["measures"][report["objective"]]["mean"]
        for point in points
        if point["state"] == "measured"
    }
    known = {cell: mean for cell, mean in means.items() if mean is not None}
    best = max(known, key=lambda cell: known[cell], default=None)
    chosen = (report["chosen"]["candidate_k"], report["chosen"]["context_k"])
    rows = []
    for c in candidates:
        cells: list[dict[str, Any]] = []
        for k in ks:
            at = (c, k)
            if at in known:
                shade = _shade(known[at], known.values())
                text = words.percent(known[at])
                cells.append(
                    {"text": text, "shade": shade, "best": at == best, "chosen": at == chosen, "span": 1}
                )
            elif cells and cells[-1]["text"] == states[at]:
                cells[-1]["span"] += 1
            else:
                cells.append({"text": states[at], "shade": None, "best": False, "chosen": False, "span": 1})
        rows.append((c, cells))
    name = words.name_of(report["objective"])
    return {"ks": ks, "rows": rows, "best": best, "chosen": chosen, "name": name}


def _shade(mean: float, known: Collection[float]) -> int:
    low, high = min(known), max(known)
    return 0 if high == low else min(4, int(5 * (mean - low) / (high - low)))


def _slices(report: Json) -> list[dict[str, Any]]:
    """Return the slices at the chosen depth, critical ones first, each with n, recall and the objective."""
    chosen = report["chosen"]
    shown = []
    for part in report["slices"]:
        at = next((p for p in part["points"] if p["context_k"] == chosen["context_k"]), None)
        if part["n"] >= LEAST_SLICE or part["critical"]:
            shown.append({"part": part, "measures": at["measures"] if at else {}})
    shown.sort(key=lambda one: not one["part"]["critical"])
    return shown[:SHOWN_SLICES]


def _closed_book(report: Json) -> Json | None:
    """Return the accuracy without any passage, where it was measured."""
    answers = report.get("answers")
    return answers["closed_book"] if answers and answers["closed_book"]["mean"] is not None else None


def _answered(answers: Json) -> list[str]:
    """Return how answers were made and judged, and how far the judge was audited."""
    order = "evidence first" if answers["evidence_first"] else "in the order retrieved"
    said = [
        f"Answers by {_model(answers['generator'])}, passages {order}.",
        f"Judged right or wrong, the reference visible, by {_model(answers['judge'])} ({answers['rubric']}).",
    ]
    audited = answers["audit"]
    if audited is not None:
        said.append(
            f"Judge audited on {audited['n']} answers{', which has expired' if audited['expired'] else ''}."
        )
    return said


def _model(model: Json) -> str:
    return f"{model['name']} {model['version']}".strip()


def _methods(report: Json) -> list[str]:
    """Return the paragraph on how this was measured, sentence by sentence."""
    methods, measured = report["methods"], report["measured"]
    how = {
        "live": f"Retrieved live from {measured.get('retriever')}.",
        "recorded": f"Measured on recorded lists ({measured.get('run')}).",
    }
    said = [how[measured["how"]]] if measured.get("how") in how else []
    said += _answered(report["answers"]) if report.get("answers") else []
    ragas = report.get("ragas")
    if ragas:
        said.append(f"Passages weighed one by one by {_model(ragas['judge'])} ({ragas['rubric']}).")
    said += [f"{note[0].upper()}{note[1:]}." for note in report["notes"][:12]]
    said += [
        f"Means: {methods['means']}.",
        (
            f"Best set: {methods['best_set']}, {methods['resamples']:,} resamples, seed {methods['seed']}, "
            f"{methods['cells_compared']} depths compared at once at {100 * (1 - methods['alpha']):g} %."
        ),
        f"Margin {report['margin']:g} for {report['objective']}.",
    ]
    revision = report["labelled_set"].get("revision")
    said.append(f"Labelled set revision {revision}." if revision else "")
    said.append(f"Basis {report['basis_hash']}." if report["basis_hash"] else "")
    said.append(f"Report {report['report_id']}." if report["report_id"] else "")
    return [one for one in said if one]
