"""`resweep init` and `doctor`: the first steps, and what to look at when something is missing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from resweep.domain.errors import UsageError
from resweep.serve.cli import frame
from resweep.serve.cli.status import Url

if TYPE_CHECKING:
    from resweep.domain.event import Hit
    from resweep.serve.doctor import Extracted, Line

DOCTOR_EXITS = {0: "all is well", 1: "something is broken; the lines marked `fail` say what"}
Target = Annotated[str, typer.Argument(metavar="MODULE:OBJECT", help="A retriever, as app.rag:retriever.")]


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
    url: Url = None,
    settings: frame.SettingsFile = None,
    as_json: frame.Json = False,
) -> None:
    """Show what is wired, what is seen and what is missing; with a retriever, what recording makes of it."""
    from resweep.serve import doctor as looking

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
