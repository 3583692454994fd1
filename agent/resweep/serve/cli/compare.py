"""`resweep compare`: two systems on the same cases, as a gate."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from resweep.serve.cli import frame
from resweep.serve.cli.sweep import Cases, Queries, Smoke, open_cache, progress, reader

COMPARE_EXITS = {
    0: "no limit was set, or all hold",
    1: "a limit does not hold",
    6: "the budget is spent or cannot suffice; what was answered is kept",
}
SIDE = "A folder of `sweep --save`, ranked lists, or MODULE:OBJECT."


def register(app: typer.Typer) -> None:
    """Add the command."""
    example = "resweep compare main.run branch.run --cases test.qrels --k 8 --max-lost 0"
    frame.command(app, "compare", example=example, exits=COMPARE_EXITS)(compare)


def compare(
    before: Annotated[str, typer.Argument(metavar="A", help=f"Before. {SIDE}")],
    after: Annotated[str, typer.Argument(metavar="B", help=f"After. {SIDE}")],
    cases: Cases = None,
    queries: Queries = None,
    k: Annotated[
        int | None, typer.Option("--k", metavar="K", help="Depth of both; else what each sweep chose.")
    ] = None,
    max_lost: Annotated[
        int | None, typer.Option("--max-lost", metavar="N", help="Fail where more cases lose evidence.")
    ] = None,
    max_drop: Annotated[
        list[str] | None,
        typer.Option(
            "--max-drop", metavar="recall=0.02", help="Fail where a measure is shown to fall by more."
        ),
    ] = None,
    smoke: Smoke = None,
    revision: Annotated[
        str, typer.Option(metavar="TEXT", help="Revision of the corpus: another one is asked anew.")
    ] = "",
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write JUnit XML, a test for each limit.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write Markdown, as a comment on a pull request.")
    ] = None,
    pipeline: Annotated[
        str | None, typer.Option("--pipeline", metavar="NAME", help="Of events, those of this pipeline.")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Ask anew, whatever was answered before.")] = False,
    settings: frame.SettingsFile = None,
    as_json: frame.Json = False,
) -> None:
    """Compare two systems case by case: what was lost and gained, whatever the mean does."""
    from resweep.serve.comparing import Sides, cases_of, depth_of, named
    from resweep.serve.parts import rules_of
    from resweep.serve.sweeping import CaseSource, cases_from, off_the_record, policy_of
    from resweep.sweep.calls import Calls
    from resweep.sweep.gate import Limits, compare_systems, parse_drops
    from resweep.sweep.labelled import smoke_cases
    from resweep.sweep.recorded import Source

    loaded = frame.settings_of(settings).settings
    limits = Limits(max_lost=max_lost, max_drop=parse_drops(max_drop or ()))
    limits.check()
    sides = [named(before), named(after)]
    path = cases or (Path(loaded.sweep.cases) if loaded.sweep.cases else None)
    known, notes = cases_from(CaseSource(path=path, queries=queries)) if path else (None, [])
    wanted = cases_of(known, sides)
    if smoke is not None:
        some = smoke_cases([case for case in wanted if case.split != "holdout"], smoke)
        notes = [*notes, f"a smoke set: {len(some)} of {len(wanted)} cases, the same each time"]
        wanted = some
    bad: list[str] = []
    source = Source(events=reader(rules_of(loaded), bad), pipeline=pipeline)
    depths = (depth_of(k, *sides), depth_of(k, *reversed(sides)))
    with open_cache(loaded, fresh) as cache, off_the_record(), frame.stdout_to_stderr(), progress() as watch:
        reading = Sides(
            cases=wanted,
            source=source,
            calls=Calls(cache, policy_of(loaded.sweep), watch),
            revision=revision,
        )
        found = [reading.side(one, depth) for one, depth in zip(sides, depths, strict=True)]
    names = (sides[0].name, sides[1].name)
    told = compare_systems(wanted, found[0], found[1], names, limits, notes=[*notes, *bad]).as_dict()
    _write(told, junit, markdown)
    if as_json:
        frame.print_json(told)
    else:
        _say(told)
    raise typer.Exit(0 if told["ok"] else 1)


def _write(told: Mapping[str, Any], junit: Path | None, markdown: Path | None) -> None:
    from resweep.domain.errors import InputError
    from resweep.serve import compare_texts

    for path, text in ((junit, compare_texts.junit), (markdown, compare_texts.markdown)):
        if path is None:
            continue
        try:
            path.write_text(text(told), "utf-8")
        except OSError as error:
            raise InputError(f"expected to write {path}; {error.strerror}: name another file") from None


def _say(told: Mapping[str, Any]) -> None:
    before, after = told["before"], told["after"]
    frame.say(
        f"before: {before['name']} at {before['context_k']}; after: {after['name']} at {after['context_k']}"
    )
    frame.say(f"{told['n']} cases, {told['n_effective']:.0f} effective")
    rows = [_row(name, one) for name, one in told["measures"].items()]
    frame.table("", ["measure", "before", "after", "difference", "fell", "rose"], rows)
    for word in ("lost", "gained"):
        changes = told[word]
        frame.say(f"{word}: {len(changes)}")
        for change in changes[:20]:
            moved = f"{change['before']:.2f} to {change['after']:.2f}"
            frame.say(f"  {change['case_id']}  {moved}  {change['query'] or ''}")
        if len(changes) > 20:
            frame.say(f"  and {len(changes) - 20} more")
    for note in told["notes"]:
        frame.say(f"note: {note}")
    for gate in told["gates"]:
        frame.say(f"{'passed' if gate['ok'] else 'FAILED'}: {gate['text']}")


def _row(name: str, one: Mapping[str, Any]) -> list[str]:
    difference = f"{one['difference']:+.3f} [{one['low']:+.3f}, {one['high']:+.3f}]"
    numbers = [f"{one['before']:.3f}", f"{one['after']:.3f}", difference]
    return [name, *numbers, str(one["fell"]), str(one["rose"])]
