"""`resweep cases`: the labelled set from the command line."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from resweep.domain.errors import UsageError
from resweep.domain.event import UNKNOWN
from resweep.serve.cli import frame

if TYPE_CHECKING:
    from resweep.serve.access import Access
    from resweep.serve.casefiles import CaseWithList

Pipeline = Annotated[str | None, typer.Option("--pipeline", metavar="NAME", help="Cases of this pipeline.")]
State = Annotated[
    str | None, typer.Option("--state", metavar="STATE,…", help="Cases in these states, e.g. candidate.")
]
Stratum = Annotated[str | None, typer.Option("--stratum", metavar="NAME", help="Cases of this stratum.")]
Split = Annotated[str | None, typer.Option("--split", metavar="NAME", help="tune, holdout or quarantined.")]
Url = Annotated[str | None, typer.Option("--url", metavar="URL", help="The agent to ask.")]
By = Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who does it; else who is logged in.")]
Limit = Annotated[int, typer.Option("--limit", metavar="N", help="Cases that are shown, at most.")]
Format = Annotated[
    str | None,
    typer.Option("--format", metavar="NAME", help="jsonl, csv, trec, run, beir or ragas; else by the name."),
]
PAGE = 200
CHUNK = 500
BAD_SHOWN = 20
EXTENSIONS = {".jsonl": "jsonl", ".csv": "csv", ".qrels": "trec", ".trec": "trec", ".run": "run"}


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = frame.group("cases", "The labelled set: the queue, and files in and out.")
    access = frame.ACCESS_EXITS
    example = "resweep cases list --pipeline support-bot --state candidate"
    frame.command(group, "list", example=example, exits=access)(show)
    told = {**access, 1: "some rows could not be used"}
    example = "resweep cases import faq.csv --pipeline support-bot"
    frame.command(group, "import", example=example, exits=told)(take)
    example = "resweep cases export cases.jsonl --pipeline support-bot"
    frame.command(group, "export", example=example, exits=access)(send)
    app.add_typer(group)


def show(
    pipeline: Pipeline = None,
    state: State = None,
    stratum: Stratum = None,
    split: Split = None,
    limit: Limit = 50,
    url: Url = None,
    settings: frame.SettingsFile = None,
    as_json: frame.Json = False,
) -> None:
    """Show the review queue in its order, and how far the labelled set is."""
    query = _query(pipeline=pipeline, state=state, stratum=stratum, split=split)
    if limit < 1:
        raise UsageError(f"--limit: expected at least 1; got {limit}")
    with _access(settings, url) as at:
        told = {**_pages(at, query, limit), "progress": at.case_progress(pipeline)["pipelines"]}
    if as_json:
        frame.print_json(told)
    else:
        _say(told)


def _pages(at: Access, query: dict[str, str], limit: int) -> dict[str, Any]:
    told = at.case_page({**query, "limit": str(min(limit, PAGE))})
    while told["next"] and len(told["cases"]) < limit:
        more = at.case_page({**query, "after": told["next"], "limit": str(min(limit, PAGE))})
        told = {**more, "cases": told["cases"] + more["cases"]}
    return {**told, "cases": told["cases"][:limit]}


def _say(told: dict[str, Any]) -> None:
    for one in told["progress"]:
        half = one["half_width"]
        width = "" if half is None else f"; a rate is known to +-{100 * half:.0f} points"
        frame.say(
            f"{one['pipeline']}: {one['labelled']} of {one['wanted']} cases labelled, "
            f"{one['waiting']} wait{width}"
        )
    if not told["cases"]:
        frame.say("No case matches. Cases come from sampled traffic (record.capture) and from imports.")
        return
    rows = [_row(case) for case in told["cases"]]
    frame.table("", ["case", "state", "stratum", "split", "weight", "seen", "query"], rows)
    if told["count"] > len(rows):
        frame.say(f"{len(rows)} of {told['count']} cases")


def _row(case: dict[str, Any]) -> list[str]:
    named = [case[name] for name in ("case_id", "state", "stratum", "split")]
    return [*named, f"{case['weight']:.1f}", str(case["seen"]), _short(case["query"])]


def _short(text: str | None) -> str:
    line = " ".join((text or "-").split())
    return line if len(line) <= 80 else f"{line[:79]}…"


def take(
    files: Annotated[list[Path], typer.Argument(help="Case lines, CSV, TREC qrels, BEIR folder or Ragas.")],
    pipeline: Annotated[
        str | None,
        typer.Option("--pipeline", metavar="NAME", help="Their pipeline; else as they say."),
    ] = None,
    form: Format = None,
    split: Annotated[
        str, typer.Option("--split", metavar="NAME", help="Judgments of a BEIR folder to take.")
    ] = "test",
    link_is_passage: Annotated[
        bool, typer.Option("--link-is-passage", help="A CSV's link is the id of the passage that answers.")
    ] = False,
    synthetic: Annotated[
        bool,
        typer.Option("--synthetic", help="Questions written from passages: reported apart."),
    ] = False,
    by: By = None,
    url: Url = None,
    settings: frame.SettingsFile = None,
    as_json: frame.Json = False,
) -> None:
    """Take cases in from files; every row that cannot be used is reported, the rest is taken."""
    from resweep.serve import casefiles

    given = casefiles.Given(pipeline, form, synthetic, link_is_passage, split)
    read = [(path, casefiles.read(path, given)) for path in files]
    counts = {"new": 0, "merged": 0, "kept": 0}
    bad = [{"file": str(p), "row": b.row, "reason": b.reason} for p, found in read for b in found.bad]
    with _access(settings, url) as at:
        notes = _name_pipeline([line for _, found in read for line in found.lines], at)
        for path, found in read:
            bad += _send_in(at, path, found.lines, by or _me(), counts)
    told = {"schema": "resweep.cases-import/1", **counts, "bad": bad, "notes": notes}
    if as_json:
        frame.print_json(told)
    else:
        _say_taken(told)
    if bad:
        raise typer.Exit(1)


def _name_pipeline(cases: list[Any], at: Access) -> list[str]:
    """Give cases that name no pipeline the only one there is, and say so.

    Raises UsageError where there are several.
    """
    nameless = [case for case in cases if not case.pipeline]
    if not nameless:
        return []
    known = [one["name"] for one in at.status()["pipelines"]]
    if len(known) > 1:
        raise UsageError(
            f"{len(nameless)} of {len(cases)} cases name no pipeline, and there are {', '.join(known)}: "
            "name theirs with --pipeline NAME"
        )
    name = known[0] if known else UNKNOWN
    for case in nameless:
        case.pipeline = name
    return [f"{len(nameless)} cases name no pipeline: filed under {name!r} (--pipeline NAME names theirs)"]


def _send_in(
    at: Access, path: Path, lines: list[Any], by: str, counts: dict[str, int]
) -> Iterator[dict[str, object]]:
    import msgspec

    bad: list[dict[str, object]] = []
    for start in range(0, len(lines), CHUNK):
        some = [msgspec.to_builtins(line) for line in lines[start : start + CHUNK]]
        answer = at.import_cases(some, by)
        for name in counts:
            counts[name] += answer[name]
        bad += [{"file": str(path), "row": start + b["row"], "reason": b["reason"]} for b in answer["bad"]]
    return iter(bad)


def _say_taken(told: dict[str, Any]) -> None:
    frame.say(
        f"{told['new']} new, {told['merged']} merged into cases that ask the same, {told['kept']} kept as "
        f"people judged them, {len(told['bad'])} rows that could not be used"
    )
    for note in told["notes"]:
        frame.say(f"  {note}")
    for one in told["bad"][:BAD_SHOWN]:
        frame.say(f"  {one['file']}, row {one['row']}: {one['reason']}")
    if len(told["bad"]) > BAD_SHOWN:
        frame.say(f"  and {len(told['bad']) - BAD_SHOWN} more: --json lists all")


def send(
    target: Annotated[Path, typer.Argument(help="File to write; a folder for BEIR. .gz is packed.")],
    pipeline: Pipeline = None,
    state: State = None,
    stratum: Stratum = None,
    split: Split = None,
    form: Format = None,
    url: Url = None,
    settings: frame.SettingsFile = None,
    as_json: frame.Json = False,
) -> None:
    """Write the labelled set to a file, with the weights that make it speak for the traffic."""
    from resweep.serve import casefiles

    chosen = form or _by_name(target)
    query = _query(pipeline=pipeline, state=state, stratum=stratum, split=split)
    if chosen in ("trec", "run", "beir", "ragas"):
        query["hits"] = "1"
    with _access(settings, url) as at:
        every = list(_lines(at, query))
    written = casefiles.write(chosen, every, target)
    told = {"schema": "resweep.files/1", "written": [str(path) for path in written], "cases": len(every)}
    if as_json:
        frame.print_json(told)
        return
    frame.say(f"{len(every)} cases")
    for path in written:
        frame.say(f"wrote {path}")


def _lines(at: Access, query: dict[str, str]) -> Iterator[CaseWithList]:
    from resweep.serve import casefiles

    after: str | None = ""
    while after is not None:
        page = at.case_lines({**query, "after": after})
        yield from (casefiles.from_wire(raw) for raw in page["lines"])
        after = page["next"]


def _by_name(target: Path) -> str:
    suffix = (target.with_suffix("").suffix if target.suffix == ".gz" else target.suffix).lower()
    if target.is_dir() or not suffix:
        return "beir"
    if suffix not in EXTENSIONS:
        raise UsageError(
            f"expected a file named {', '.join(EXTENSIONS)} (.gz: packed), or a folder for BEIR; "
            f"got {target}: name it so, or state its --format"
        )
    return EXTENSIONS[suffix]


def _query(**given: str | None) -> dict[str, str]:
    return {name: value for name, value in given.items() if value}


def _access(settings: str | None, url: str | None) -> Any:
    from resweep.serve.access import access

    return access(frame.settings_of(settings).settings, url)


def _me() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no such user, as in a container
        return "import"
