"""`resweep sweep`: which depths cannot be told from the best."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from resweep.serve.cli import frame

if TYPE_CHECKING:
    from resweep.domain.event import RetrievalEvent
    from resweep.domain.invalidation import InvalidationRules

RunFile = Annotated[
    Path, typer.Option("--run", metavar="RUN", help="Ranked lists: a TREC run or resweep.event/1.")
]
Qrels = Annotated[
    Path, typer.Option("--qrels", metavar="QRELS", help="Judgments: TREC qrels, BEIR folder or cases.")
]
Depths = Annotated[str | None, typer.Option("--k", metavar="3,5,8", help="Depths; 1-10,20 is a range.")]
Objective = Annotated[str, typer.Option(metavar="NAME", help="The measure that decides.")]
Margin = Annotated[
    float | None, typer.Option(metavar="X", help="Depths less than this below the best count as equal.")
]
Name = Annotated[str | None, typer.Option("--pipeline", metavar="NAME", help="Events of this pipeline only.")]
SHOWN = ("recall", "all_evidence", "precision", "ndcg")


def register(app: typer.Typer) -> None:
    """Add the command."""
    frame.command(app, "sweep", example="resweep sweep --run bm25.run --qrels test.qrels --k 3,5,8")(sweep)


def sweep(
    run: RunFile,
    qrels: Qrels,
    k: Depths = None,
    objective: Objective = "ndcg",
    margin: Margin = None,
    pipeline: Name = None,
    settings: frame.SettingsFile = None,
    as_json: frame.Json = False,
) -> None:
    """Sweep recorded ranked lists: no live system, no model, no cost."""
    from resweep.serve.parts import rules_of
    from resweep.sweep.recorded import Source, sweep_recorded
    from resweep.sweep.settings import DEFAULT_DEPTHS, SweepSettings, parse_depths

    rules = rules_of(frame.settings_of(settings).settings)
    source = Source(events=reader(rules), pipeline=pipeline)
    depths = parse_depths(k) if k else DEFAULT_DEPTHS
    wanted = SweepSettings(objective=objective, margin=margin)
    told: dict[str, Any] = sweep_recorded(run, qrels, depths, wanted, source=source).as_dict()
    if as_json:
        frame.print_json(told)
    else:
        _say(told, objective)


def reader(rules: InvalidationRules) -> Callable[[Path], Iterator[RetrievalEvent]]:
    """Return what reads the events of a file of `resweep.event/1`."""
    from resweep.ingest.jsonlines import EventLine, LineReader, lines_of

    def events(path: Path) -> Iterator[RetrievalEvent]:
        for item in LineReader(rules).read(lines_of(path)):
            if isinstance(item, EventLine):
                yield item.event

    return events


def _say(told: dict[str, Any], objective: str) -> None:
    frame.say(f"{told['n_cases']} cases, {told['n_effective']:.0f} effective, by {objective}")
    frame.table("", ["k", *SHOWN, ""], [_row(point, told) for point in told["points"]])
    chosen = told["chosen"]
    if chosen:
        frame.say(f"chosen: k = {chosen['context_k']}: {chosen['why']}")
    for found in told["diagnosis"]:
        frame.say(f"  {found['text']}")


def _row(point: dict[str, Any], told: dict[str, Any]) -> list[str]:
    best = "not distinguishable from the best" if point["context_k"] in told["best_set"] else ""
    if point["state"] != "measured":
        return [str(point["context_k"]), *("-" for _ in SHOWN), point["state"]]
    return [str(point["context_k"]), *(_measure(point["measures"].get(name)) for name in SHOWN), best]


def _measure(measure: dict[str, Any] | None) -> str:
    if measure is None or measure["mean"] is None:
        return "-"
    return f"{measure['mean']:.3f} [{measure['low']:.3f}, {measure['high']:.3f}]"
