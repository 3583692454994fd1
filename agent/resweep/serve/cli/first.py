"""`resweep init` and `doctor`: the first steps, and what to look at when something is missing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from resweep.domain.errors import UsageError
from resweep.serve.cli import frame
from resweep.serve.cli.status import Url

if TYPE_CHECKING:
    from resweep.detect.passive.reach import Reach
    from resweep.domain.event import Hit
    from resweep.serve.doctor import Extracted, Line
    from resweep.serve.traffic import System, Traffic

DOCTOR_EXITS = {0: "all is well", 1: "something is broken; the lines marked `fail` say what"}
Target = Annotated[str, typer.Argument(metavar="MODULE:OBJECT", help="A retriever, as app.rag:retriever.")]


Recorded = Annotated[
    list[Path] | None,
    typer.Option(
        "--traffic", metavar="FILE", help="Your own events (resweep.event/1), weeks of them; may be repeated."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    frame.command(app, "init", example="resweep init app.rag:retriever --pipeline support-bot")(init)
    example = "resweep doctor app.rag:retriever 'how long do refunds take'"
    frame.command(app, "doctor", example=example, exits=DOCTOR_EXITS)(doctor)


def init(
    target: Target,
    pipeline: Annotated[str | None, typer.Option(metavar="NAME", help="The pipeline's name.")] = None,
    folder: Annotated[Path, typer.Option("--dir", metavar="DIR", help="Where to write.")] = Path(),
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
    as_json: frame.Json = False,
) -> None:
    """Look at a retriever, and write rag.yaml (its config) and resweep.toml (settings) to start from."""
    from resweep.serve import starting
    from resweep.serve.named import load_object, look

    with frame.stdout_to_stderr():
        seen = look(load_object(target))
    name = pipeline or target.rpartition(":")[2].rpartition(".")[2]
    texts = {"rag.yaml": starting.config_file(name, seen.config), "resweep.toml": starting.SETTINGS}
    if not force:
        there = [str(folder / file) for file in texts if (folder / file).exists()]
        if there:
            raise UsageError(f"{' and '.join(there)} would be replaced: give --force, or another --dir")
    written = [str(starting.write_new(folder / file, text, force=force)) for file, text in texts.items()]
    if as_json:
        document = {"schema": "resweep.init/1", "pipeline": name, "config": dict(seen.config.document)}
        frame.print_json({**document, "written": written})
        return
    for path in written:
        frame.say(f"wrote {path}")
    frame.say("Complete rag.yaml, then give its config to watch(): resweep.watch(retriever, config=…)")


def doctor(
    target: Annotated[
        str | None, typer.Argument(metavar="[MODULE:OBJECT]", help="A retriever to ask.")
    ] = None,
    question: Annotated[str | None, typer.Argument(help="What to ask it.")] = None,
    traffic: Recorded = None,
    url: Url = None,
    settings: frame.SettingsFile = None,
    as_json: frame.Json = False,
) -> None:
    """Show what is wired, what is seen and what is missing; with a retriever, what recording makes of it;
    with recorded traffic, how close it comes to an alarm and the smallest change that would be seen."""
    from resweep.serve import doctor as looking

    if traffic:
        if target is not None:
            raise UsageError("expected a retriever or --traffic, got both: run doctor twice")
        _traffic(traffic, settings, as_json)
        return
    if target is None:
        lines = list(looking.findings(frame.settings_of(settings), url))
        _print(lines, None, as_json)
        raise typer.Exit(_code(lines))
    from resweep.serve.named import load_object, look

    with frame.stdout_to_stderr():
        seen = look(load_object(target), question if question is not None else "test")
        found = looking.extracted(seen, looking.cost_per_call(seen.answer))
    _print(list(found.lines), found, as_json)
    raise typer.Exit(_code(list(found.lines)))


def _traffic(files: list[Path], settings: str | None, as_json: bool) -> None:
    from resweep.serve import traffic as measuring
    from resweep.serve.parts import detect_settings, rules_of

    loaded = frame.settings_of(settings).settings
    told = measuring.traffic(files, settings=detect_settings(loaded), rules=rules_of(loaded))
    if as_json:
        frame.print_json(told.to_json())
        return
    frame.say(f"{told.events} events, {told.bad_lines} bad lines")
    for system in told.systems:
        _say_system(system, told)


def _say_system(system: System, told: Traffic) -> None:
    from resweep.serve.traffic import at_most_per_quarter, loud

    frame.say()
    frame.say(
        f"{system.pipeline}, config {system.config}: {system.events} events in {system.days:.1f} days, "
        f"{system.repeats:.0%} of them repeated questions"
    )
    warned = len(loud(system.flags))
    at_most = at_most_per_quarter(warned, system.days)
    bound = "" if at_most is None else f": at most {at_most:.1f} a quarter (95 %), as far as this tells"
    frame.say(f"warnings and pages in this time: {warned}{bound}; allowed by the budgets: {told.bound:.2f}")
    for flag in system.flags:
        frame.say(f"  {flag.severity}: {flag.message}")
    rows = [[s.layer, s.state, _peak(s.peak), s.note] for s in system.layers]
    frame.table("", ["layer", "state", "highest of 28 days (alarm at 0)", "note"], rows)
    rows = [_reach(one) for one in system.reaches]
    frame.table("", ["smallest change seen", "usual", "within a day", "within three days", "note"], rows)


def _peak(peak: float) -> str:
    return "none" if peak < -90 else f"{peak:.1f}"


def _reach(one: Reach) -> list[str]:
    share = one.unit == "share"

    def size(value: float | None) -> str:
        return "not seen" if value is None else f"{value:.0%}" if share else f"{value:.2f} {one.unit}"

    usual = f"{one.usual:.1%}" if share else "-"
    return [one.what, usual, *(size(value) for value in one.within.values()), one.why]


def _code(lines: list[Line]) -> int:
    return 1 if any(line.state == "fail" for line in lines) else 0


def _print(lines: list[Line], found: Extracted | None, as_json: bool) -> None:
    if as_json:
        frame.print_json(_object(lines, found))
        return
    if found is not None and found.event is not None:
        frame.table(
            f"{found.config.config}: what was extracted",
            ["rank", "id", "score", "kind", "state", "source", "tokens"],
            [_hit(rank, hit) for rank, hit in enumerate(found.event.hits, 1)],
        )
    for line in lines:
        frame.say(f"{line.state:<5} {line.subject:<10} {line.text}")
    if found is not None:
        frame.say(
            f"ok    cost       {found.added_us:.1f} µs a call, measured with this answer on this machine"
        )


def _hit(rank: int, hit: Hit) -> list[str]:
    score = "-" if hit.score is None else f"{hit.score:.4f}"
    tokens = "-" if hit.tokens is None else str(hit.tokens)
    return [str(rank), hit.id, score, hit.kind or "-", hit.score_state, hit.source or "unknown", tokens]


def _object(lines: list[Line], found: Extracted | None) -> dict[str, object]:
    import msgspec

    told: dict[str, object] = {"schema": "resweep.doctor/1", "findings": [line._asdict() for line in lines]}
    if found is not None:
        told["config"] = msgspec.to_builtins(found.config)
        told["hits"] = [] if found.event is None else [hit._asdict() for hit in found.event.hits]
        told["added_us"] = round(found.added_us, 2)
    return told
