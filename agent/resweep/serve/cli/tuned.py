"""`resweep check`, `accept` and `lock`: the tuned k beside the hash of its config."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from resweep.serve.cli import frame
from resweep.serve.cli.status import Because, Url, me

if TYPE_CHECKING:
    from resweep.domain.verdict import TunedK
    from resweep.serve.checking import Checked
    from resweep.settings import Settings
    from resweep.store.exchange import Disagreement

CHECK_EXITS = {
    0: "the tuned k is valid for this config",
    1: "it is not: untuned, suspect or expired; also without a lock file",
}
Lock = Annotated[
    str | None,
    typer.Option("--lock", metavar="FILE", help="The lock file; else the nearest one from here upward."),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    frame.command(app, "check", example="resweep check rag.yaml", exits=CHECK_EXITS)(check)
    frame.command(
        app,
        "accept",
        example="resweep accept support-bot --k 8 --because 'sweep of 3 May'",
        exits=frame.ACCESS_EXITS,
    )(accept)
    lock = frame.group("lock", "Exchange tuned depths between the store and resweep.lock.")
    frame.command(lock, "pull", example="resweep lock pull --lock resweep.lock", exits=frame.ACCESS_EXITS)(
        lock_pull
    )
    frame.command(lock, "push", example="resweep lock push", exits=frame.ACCESS_EXITS)(lock_push)
    app.add_typer(lock)


def check(
    config: Annotated[Path, typer.Argument(help="YAML, TOML or JSON with `pipeline` and `config`.")],
    lock: Lock = None,
    settings: frame.SettingsFile = None,
    as_json: frame.Json = False,
) -> None:
    """Say whether the tuned k still holds for a config, by the lock file alone."""
    from resweep.serve import checking
    from resweep.serve.parts import rules_of
    from resweep.store.lockfile import LockFile, read_lock

    loaded = frame.settings_of(settings).settings
    described = checking.read_config(config)
    path = lock_path(lock, loaded, config.resolve().parent)
    found = read_lock(path) if path else LockFile()
    checked = checking.check(described, found, rules_of(loaded), time.time())
    if as_json:
        frame.print_json(checked.to_json())
    else:
        _say_checked(checked, path)
    raise typer.Exit(0 if checked.state == "valid" else 1)


def _say_checked(checked: Checked, lock: Path | None) -> None:
    frame.say(f"{checked.pipeline}: {checked.state}: {checked.why}")
    frame.say(f"  config {checked.found.config_hash}, basis {checked.found.basis_hash}")
    frame.say(f"  lock file: {lock or 'none found'}")
    if checked.found.omitted:
        frame.say(f"  left out as secrets: {', '.join(checked.found.omitted)}")
    for change in checked.changed:
        before, after = (_part(side) for side in (change.before, change.after))
        frame.say(f"  {change.path}: {before} -> {after}  ({change.effect}: {change.because})")


def _part(value: object) -> str:
    return "(absent)" if value is None else repr(value)


def lock_path(given: str | None, settings: Settings, *starts: Path) -> Path | None:
    """Return the lock file meant: that given, that of the settings, else the nearest one upward."""
    from resweep.store.lockfile import find_lock

    named = given or settings.agent.lock_file
    if named:
        return Path(named)
    found = (find_lock(start) for start in (Path.cwd(), *starts))
    return next((path for path in found if path), None)


ContextK = Annotated[int | None, typer.Option("--k", metavar="N", help="Context depth; else the one in use.")]
CandidateK = Annotated[
    int | None, typer.Option("--candidate-k", metavar="N", help="Candidates asked of the index.")
]
Provisional = Annotated[bool, typer.Option("--provisional", help="Accepted for now, not swept.")]
Until = Annotated[str | None, typer.Option("--until", metavar="DATE", help="Valid until: 2027-01-31.")]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="For the config in FILE, not the one in use.")
]


def accept(
    pipeline: Annotated[str, typer.Argument(help="The pipeline's name.")],
    k: Annotated[
        int | None, typer.Option("--k", metavar="N", help="Context depth; else the one in use.")
    ] = None,
    candidate_k: Annotated[
        int | None, typer.Option("--candidate-k", metavar="N", help="Candidates asked of the index.")
    ] = None,
    provisional: Annotated[bool, typer.Option("--provisional", help="Accepted for now, not swept.")] = False,
    because: Because = "",
    until: Annotated[str | None, typer.Option(metavar="DATE", help="Valid until then: 2027-01-31.")] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="For the config in FILE, else the one in use.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Take depth and evidence from a sweep's report.")
    ] = None,
    lock: Lock = None,
    url: Url = None,
    settings: frame.SettingsFile = None,
    as_json: frame.Json = False,
) -> None:
    """Adopt a depth as tuned for a pipeline's config; its flags about k clear."""
    from resweep.serve.access import access

    loaded = frame.settings_of(settings).settings
    path = lock_path(lock, loaded)
    _readable(path)
    wish: dict[str, object] = {
        "pipeline": pipeline,
        "context_k": k,
        "candidate_k": candidate_k,
        "provisional": provisional,
        "because": because,
        "until": until,
        "by": me(),
        "document": _document(config, pipeline),
        **(_from_report(report, pipeline, k, candidate_k, because) if report else {}),
    }
    with access(loaded, url) as agent:
        told = agent.accept(wish)
        if report is not None:
            agent.hand_over({"report": {**_report(report), "pipeline": pipeline}})
    written = _to_lock(path, told["tuned"])
    if as_json:
        frame.print_json({**told, "lock": None if written is None else str(written)})
        return
    for record in told["tuned"]:
        frame.say(
            f"{record['pipeline']}: k = {record['context_k']} is the tuned depth of basis {record['basis']}"
            f"{' for now' if record['provisional'] else ''}"
        )
        runs = told["running"][record["pipeline"]]
        if runs not in (None, record["basis"]):
            frame.say(f"  note: basis {runs} runs now, of which this says nothing")
    for key in told["cleared"]:
        frame.say(f"  cleared {key}")
    frame.say(
        f"  written to {written}"
        if written
        else "  kept by the agent alone: there is no resweep.lock here or in a folder above. To make one for "
        "review, run `resweep lock pull`"
    )


def _readable(path: Path | None) -> None:
    """Raise LockFileError before anything is recorded, where the lock file could not be written after."""
    from resweep.store.lockfile import read_lock

    if path is not None and path.exists():
        read_lock(path)


def _report(path: Path) -> dict[str, Any]:
    from resweep.sweep.saved import REPORT_FILE, read_report

    return read_report(path / REPORT_FILE if path.is_dir() else path)


def _from_report(
    path: Path, pipeline: str, k: int | None, candidate_k: int | None, because: str
) -> dict[str, object]:
    """Return the part of an acceptance that a report states. A folder of `--save` will do."""
    from resweep.domain.errors import UsageError
    from resweep.serve.adopting import acceptance_of, in_short

    report = _report(path)
    if report["pipeline"] not in (None, pipeline):
        raise UsageError(
            f"{path} is a report on {report['pipeline']!r}; got {pipeline!r}: name that pipeline"
        )
    if not report["basis_hash"]:
        raise UsageError(f"{path} does not say what config it was measured for: sweep with --config FILE")
    return {**acceptance_of(report, k, candidate_k), "because": because or in_short(report)}


def _document(config: Path | None, pipeline: str) -> object:
    if config is None:
        return None
    from resweep.domain.errors import UsageError
    from resweep.serve.checking import read_config

    described = read_config(config)
    if described.pipeline != pipeline:
        raise UsageError(f"{config} describes {described.pipeline!r}; got {pipeline!r}: name that pipeline")
    return described.config


def _to_lock(path: Path | None, tuned: list[Any]) -> Path | None:
    """Write accepted records into the lock file; return its path, None where there is none."""
    if path is None:
        return None
    from resweep.store.exchange import pull
    from resweep.store.lockfile import LockFile, read_lock, write_lock

    lock = read_lock(path) if path.exists() else LockFile()
    write_lock(path, pull(lock, _records(tuned)).lock)
    return path


def _records(tuned: list[Any]) -> list[TunedK]:
    from resweep.serve.accepting import records

    return records({"tuned": tuned})


def lock_pull(
    lock: Lock = None, url: Url = None, settings: frame.SettingsFile = None, as_json: frame.Json = False
) -> None:
    """Write the store's tuned depths into the lock file, for review; makes the file where there is none."""
    from resweep.serve.access import access
    from resweep.store.exchange import pull
    from resweep.store.lockfile import FILE_NAME, LockFile, read_lock, write_lock

    loaded = frame.settings_of(settings).settings
    path = lock_path(lock, loaded) or Path(FILE_NAME)
    held = read_lock(path) if path.exists() else LockFile()
    with access(loaded, url) as agent:
        stored = _records(agent.tuned()["tuned"])
    pulled = pull(held, stored)
    if pulled.changed or not path.exists():
        write_lock(path, pulled.lock)
    _say_exchange(f"{path}", pulled.changed, pulled.disagreements, as_json)


def lock_push(
    lock: Lock = None, url: Url = None, settings: frame.SettingsFile = None, as_json: frame.Json = False
) -> None:
    """Record the lock file's tuned depths in the store: what was reviewed holds from now on."""
    from resweep.serve.accepting import tuned_object
    from resweep.serve.access import access
    from resweep.store.exchange import push
    from resweep.store.lockfile import FILE_NAME, read_lock

    loaded = frame.settings_of(settings).settings
    path = lock_path(lock, loaded) or Path(FILE_NAME)
    held = read_lock(path)
    with access(loaded, url) as agent:
        pushed = push(held, _records(agent.tuned()["tuned"]))
        if pushed.records:
            agent.push([tuned_object(record) for record in pushed.records])
    _say_exchange("the store", pushed.records, pushed.disagreements, as_json)


def _say_exchange(
    where: str, changed: tuple[TunedK, ...], overruled: tuple[Disagreement, ...], as_json: bool
) -> None:
    if as_json:
        from resweep.serve.accepting import tuned_object

        told = {
            "schema": "resweep.lock-exchange/1",
            "to": where,
            "changed": [tuned_object(record) for record in changed],
            "overruled": [str(one) for one in overruled],
        }
        frame.print_json(told)
        return
    frame.say(f"{where}: {len(changed)} new or changed")
    for record in changed:
        frame.say(f"  {record.pipeline}, basis {record.basis}, epoch {record.epoch}: k = {record.context_k}")
    for one in overruled:
        frame.say(f"  overruled: {one}")
