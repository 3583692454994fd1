"""The demo's sweep: the depth for the new embedder, measured on the questions that somebody judged."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.table import Table

from resweep.domain.fingerprint import fingerprint
from resweep.serve.adopting import acceptance_of, in_short
from resweep.serve.demo.corpus import documents, questions
from resweep.serve.demo.rag import SupportRetriever, config
from resweep.serve.report.page import render
from resweep.sweep.cache import Cache
from resweep.sweep.calls import Policy
from resweep.sweep.lists import Case, RankedList
from resweep.sweep.runner import Question, Target, Wanted, sweep_live
from resweep.sweep.settings import SweepSettings

DEPTHS = (1, 2, 3, 5, 8, 10, 15, 20, 40)
OBJECTIVE = "recall"
REPORT_FILE = "report.html"


def sweep(pipeline: str, model: str, k: int, folder: Path) -> dict[str, Any]:
    """Return the report of a retrieval-only sweep; the page is written into the folder."""
    retriever = SupportRetriever(documents(), model, k)
    cases = [
        Case(case_id=one.id, query=one.text, judgments=dict.fromkeys(one.relevant, 1.0))
        for one in questions()
    ]
    cache = Cache(folder / "sweeps", time.time())
    try:
        swept = sweep_live(
            Target(ask=lambda question: _asked(retriever, question), version=model),
            Wanted(cases=cases, ks=DEPTHS),
            SweepSettings(objective=OBJECTIVE),
            cache=cache,
            policy=Policy(concurrency=1),
            pipeline=pipeline,
            basis_hash=fingerprint(config(model, k)).basis_hash,
        )
    finally:
        cache.close()
    parts = fingerprint(config(model, k)).document
    report = swept.report.stamped(
        {"how": "live", "retriever": pipeline, "parts": parts}, time.time()
    ).as_dict()
    (folder / REPORT_FILE).write_text(render(report), "utf-8")
    return report


def _asked(retriever: SupportRetriever, question: Question) -> RankedList:
    """Return the documents that a question brings: the questions were judged by document."""
    hits = retriever.retrieve(question.query, question.context_k)
    return RankedList(
        ids=[hit["id"].partition("#")[0] for hit in hits],
        scores=[hit["score"] for hit in hits],
        sources=[hit["source"] for hit in hits],
        tokens=[(len(hit["text"]) + 3) // 4 for hit in hits],
        texts=[hit["text"] for hit in hits],
    )


def wish(pipeline: str, report: Mapping[str, Any]) -> dict[str, object]:
    """Return the acceptance of what a report chose."""
    return {
        "pipeline": pipeline,
        **acceptance_of(report, None, None),
        "because": in_short(report),
        "by": "demo",
    }


def in_brief(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the demo's summary keeps of a report."""
    return {
        "report_id": report["report_id"],
        "n_cases": report["n_cases"],
        "objective": report["objective"],
        "margin": report["margin"],
        "recall": {str(p["context_k"]): p["measures"]["recall"]["mean"] for p in report["points"]},
        "best_set": list(report["best_set"]),
        "chosen": dict(report["chosen"]),
    }


def curve(report: Mapping[str, Any]) -> Table:
    """Return the sweep as a table, a row for each depth."""
    table = Table(title=f"sweep of {report['pipeline']}: {report['n_cases']} judged questions")
    for name, justify in (
        ("k", "right"),
        ("recall", "right"),
        ("95 %", "right"),
        ("tokens", "right"),
        ("", "left"),
    ):
        table.add_column(name, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for point in report["points"]:
        found = point["measures"]["recall"]
        table.add_row(
            str(point["context_k"]),
            f"{100 * found['mean']:.1f} %",
            f"{100 * found['low']:.0f} to {100 * found['high']:.0f}",
            f"{point['prompt_tokens']:,.0f}",
            _result(point, report),
        )
    return table


def _result(point: Mapping[str, Any], report: Mapping[str, Any]) -> str:
    if point["context_k"] == report["chosen"]["context_k"]:
        return "chosen"
    return "in the best set" if point["context_k"] in report["best_set"] else ""
