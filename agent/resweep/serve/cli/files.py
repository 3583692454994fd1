"""`resweep replay`, `rules`, `dashboards` and `demo`: files in, files out, and the whole loop at once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from resweep.domain.errors import InputError, UsageError
from resweep.serve.cli import frame
from resweep.serve.cli.sampled import case_recorder, write_cases
from resweep.serve.cli.tuned import Lock, lock_path

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from resweep.serve.replay import ReplayResult


PRINTED_RULES = ("recording", "alerts")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    frame.command(app, "replay", example="resweep replay events.jsonl.gz --json")(replay)
    frame.command(app, "rules", example="resweep rules --write /etc/prometheus/resweep")(rules)
    frame.command(app, "dashboards", example="resweep dashboards --write dashboards/")(dashboards)
    frame.command(app, "demo", example="resweep demo --keep")(demo)


Cases = Annotated[
    Path | None,
    typer.Option(
        "--cases", metavar="FILE", help="Write the cases that sampling would have made, as resweep.case/1."
    ),
]
Seed = Annotated[
    str | None, typer.Option("--seed", metavar="TEXT", help="Draw another sample; else label.seed.")
]


def replay(
    files: Annotated[list[Path], typer.Argument(help="Files of resweep.event/1: .jsonl or .jsonl.gz.")],
    lock: Lock = None,
    cases: Cases = None,
    seed: Seed = None,
    settings: frame.SettingsFile = None,
    as_json: frame.Json = False,
) -> None:
    """Judge recorded events on virtual time: what would have been said, and at which event."""
    from resweep.serve import replay as replaying
    from resweep.serve.parts import detect_settings, rules_of
    from resweep.store.lockfile import read_lock

    loaded = frame.settings_of(settings).settings
    path = lock_path(lock, loaded) if lock else None
    tuned = read_lock(path).entries if path else ()
    told, rules = detect_settings(loaded), rules_of(loaded)
    if cases is None:
        result = replaying.replay(files, settings=told, rules=rules, tuned=tuned)
    else:
        recorder = case_recorder(loaded, seed)
        hear = recorder.hear_item
        result = replaying.replay(files, settings=told, rules=rules, tuned=tuned, hear=hear)
        write_cases(cases, recorder)
    if as_json:
        frame.print_json(result.to_json())
    else:
        _say_replay(result)


def _say_replay(result: ReplayResult) -> None:
    told: dict[str, Any] = result.to_json()
    frame.say(
        f"{told['events']} events, {told['feedback']} pieces of feedback, {told['bad_lines']} bad lines"
    )
    for bad in told["bad"]:
        frame.say(f"  {bad['file']}, line {bad['line']}: {bad['reason']}")
    for name, pipeline in told["pipelines"].items():
        why = f": {pipeline['why']}" if pipeline.get("why") else ""
        frame.say(f"{name}: {pipeline['verdict']}{why}")
    if not told["flags"]:
        frame.say("No flag was raised.")
        return
    frame.table("", ["event", "when", "severity", "reason", "cleared", "message"], list(_rows(told["flags"])))


def _rows(flags: list[dict[str, Any]]) -> Iterator[list[str]]:
    for flag in flags:
        when = time.strftime("%Y-%m-%d %H:%M", time.gmtime(flag["opened_ts"]))
        cleared = "-" if flag["cleared_at_event"] is None else str(flag["cleared_at_event"])
        yield [str(flag["opened_at_event"]), when, flag["severity"], flag["reason"], cleared, flag["message"]]


Write = Annotated[
    Path | None, typer.Option("--write", metavar="DIR", help="Write the files there instead of printing.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that are there and differ.")]


def rules(write: Write = None, force: Force = False, as_json: frame.Json = False) -> None:
    """Print or write the alerting and recording rules for Prometheus, with their runbooks."""
    _files(
        ("recording", "alerts", "invalidation.yaml", "runbooks"),
        ("recording", "alerts"),
        write,
        force,
        as_json,
    )


def dashboards(write: Write = None, force: Force = False, as_json: frame.Json = False) -> None:
    """Print or write the Grafana dashboards."""
    _files(("dashboards",), ("dashboards",), write, force, as_json)


def _files(
    wanted: tuple[str, ...], printed: tuple[str, ...], write: Path | None, force: bool, as_json: bool
) -> None:
    from resweep.shipped import rules_dir

    try:
        shipped = rules_dir()
    except FileNotFoundError as error:
        raise InputError(str(error)) from None
    if write is not None:
        found = _found(shipped, wanted)
        if len(wanted) == 1:  # what the folder is for needs no folder of its own in it
            found = ((path.partition("/")[2], body) for path, body in found)
        written = [str(_write(write / path, body, force)) for path, body in found]
        _say_files(written, as_json)
        return
    shown = dict(_found(shipped, printed))
    if as_json:
        frame.print_json({"schema": "resweep.files/1", "files": {p: b.decode() for p, b in shown.items()}})
        return
    for number, (path, body) in enumerate(shown.items()):
        if path.endswith((".yaml", ".yml")):
            frame.say(("---\n" if number else "") + f"# {path}")
        frame.say(body.decode().rstrip("\n"))


def _found(shipped: Traversable, wanted: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    for name in wanted:
        yield from _walk(shipped / name, name)


def _walk(at: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    if at.is_file():
        yield path, at.read_bytes()
    elif at.is_dir():
        for child in sorted(at.iterdir(), key=lambda c: c.name):
            if not child.name.startswith((".", "__")) and not child.name.endswith(".py"):
                yield from _walk(child, f"{path}/{child.name}")


def _write(path: Path, body: bytes, force: bool) -> Path:
    if path.exists() and path.read_bytes() != body and not force:
        raise UsageError(f"{path} is there and differs: give --force to replace it, or another folder")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
    except OSError as error:
        raise UsageError(f"expected to write {path}; {error.strerror or error}") from None
    return path


def _say_files(written: list[str], as_json: bool) -> None:
    if as_json:
        frame.print_json({"schema": "resweep.files/1", "written": written})
        return
    for path in written:
        frame.say(f"wrote {path}")


Keep = Annotated[bool, typer.Option("--keep", help="Leave everything running until Ctrl-C.")]
NoPrometheus = Annotated[
    bool, typer.Option("--no-prometheus", help="Do not start Prometheus, even if it is installed.")
]


def demo(keep: Keep = False, no_prometheus: NoPrometheus = False, as_json: frame.Json = False) -> None:
    """Show the loop on a real corpus: watch a retriever, change its embedder, see the alarm."""
    from resweep.serve.demo import run as playing

    raise typer.Exit(playing.run(keep=keep, as_json=as_json, prometheus=not no_prometheus))
