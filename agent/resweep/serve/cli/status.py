"""`resweep status`, `flags` and `maintenance`: what the agent says, and what people say back."""

from __future__ import annotations

import getpass
import re
import time
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from resweep.domain.errors import UsageError
from resweep.serve.cli import frame

Url = Annotated[
    str | None, typer.Option("--url", metavar="URL", help="Ask the agent at URL instead of this user's own.")
]
Because = Annotated[str, typer.Option("--because", metavar="TEXT", help="Why; it is kept.")]
COLUMNS = ["pipeline", "verdict", "k", "tuned k", "last hour", "empty", "errors", "flags"]
_SPAN = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def register(app: typer.Typer) -> None:
    """Add the commands."""
    frame.command(app, "status", example="resweep status", exits=frame.ACCESS_EXITS)(status)
    flags = frame.group("flags", "List the reasons to doubt a tuned k, and say that they were seen.")
    frame.command(flags, "list", example="resweep flags list --all --json", exits=frame.ACCESS_EXITS)(
        flags_list
    )
    frame.command(
        flags, "ack", example="resweep flags ack KEY --because 'looking into it'", exits=frame.ACCESS_EXITS
    )(flags_ack)
    frame.command(
        flags,
        "resolve",
        example="resweep flags resolve KEY --because 'index restored'",
        exits=frame.ACCESS_EXITS,
    )(flags_resolve)
    app.add_typer(flags)
    work = frame.group("maintenance", "Announce work on a pipeline: its flags page nobody meanwhile.")
    frame.command(
        work, "start", example="resweep maintenance start support-bot --for 2h", exits=frame.ACCESS_EXITS
    )(maintenance_start)
    frame.command(work, "list", example="resweep maintenance list --json", exits=frame.ACCESS_EXITS)(
        maintenance_list
    )
    frame.command(work, "end", example="resweep maintenance end support-bot", exits=frame.ACCESS_EXITS)(
        maintenance_end
    )
    app.add_typer(work)


def me() -> str:
    """Return the name of the user who runs a command."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no name for this user id, as in many containers
        return ""


def status(url: Url = None, settings: frame.SettingsFile = None, as_json: frame.Json = False) -> None:
    """Show every pipeline: its verdict in words, its depth, its traffic, and what to do next."""
    from resweep.serve.access import access

    with access(frame.settings_of(settings).settings, url) as agent:
        told = agent.status()
    if as_json:
        frame.print_json(told)
        return
    _say_agent(told["agent"])
    if not told["pipelines"]:
        frame.say(
            "No pipeline was seen yet: wrap a retriever with resweep.watch(retriever), and ask it something."
        )
        return
    frame.table("", COLUMNS, _rows(told))
    for one in told["pipelines"]:
        frame.say()
        frame.say(f"{one['name']}: {one['why']}")
        if one["next_command"]:
            frame.say(f"  next: {one['next_command']}")


def _say_agent(agent: dict[str, Any] | None) -> None:
    if agent is None:
        frame.say("No agent runs; this is what the store holds. Start one with `resweep agent`.")
        return
    frame.say(f"resweep {agent['version']}, {agent['state']}, pid {agent['pid']} on {agent['host']}")
    waiting = agent["spool"]["files"]
    if waiting or agent["spool"]["bad"]:
        frame.say(f"spool: {waiting} batches wait, {agent['spool']['bad']} could not be read")
    if agent["lock_file"]["path"]:
        frame.say(f"lock file followed: {agent['lock_file']['path']}")
    for trouble in agent["troubles"]:
        frame.say(f"trouble: {trouble}")


def _rows(told: dict[str, Any]) -> list[list[str]]:
    return [
        [
            one["name"],
            one["verdict"] + (" (maintenance)" if one["maintenance"] else ""),
            _shown(one["context_k"]),
            _shown(one["tuned"] and one["tuned"]["context_k"]),
            *(str(one["last_hour"][name]) for name in ("retrievals", "empty", "errors")),
            str(one["open_flags"]),
        ]
        for one in told["pipelines"]
    ]


def _shown(value: object) -> str:
    return "-" if value is None else str(value)


def flags_list(
    pipeline: Annotated[str | None, typer.Option(metavar="NAME", help="Those of one pipeline.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Cleared ones too.")] = False,
    url: Url = None,
    settings: frame.SettingsFile = None,
    as_json: frame.Json = False,
) -> None:
    """Show the open flags, with their keys."""
    from resweep.serve.access import access

    with access(frame.settings_of(settings).settings, url) as agent:
        told = agent.flags(pipeline, every)
        if as_json:
            frame.print_json(told)
            return
        known = [one["name"] for one in agent.status()["pipelines"]]
    for flag in told["flags"]:
        _say_flag(flag)
    if not told["flags"]:
        frame.say("No flag is open.")
    if pipeline and pipeline not in known:
        from resweep.store.names import unseen

        frame.say(unseen(pipeline, known))


def _say_flag(flag: dict[str, Any]) -> None:
    opened = time.strftime("%Y-%m-%d %H:%M", time.localtime(flag["opened_ts"]))
    frame.say(f"{flag['severity']:<8} {flag['state']:<8} since {opened}  {flag['key']}")
    frame.say(f"  {flag['message']}")
    said = flag["acknowledged"]
    if said:
        frame.say(f"  {said['action']} by {said['by'] or 'somebody'}: {said['because'] or 'no reason given'}")
    if flag["next_command"] and flag["state"] == "open":
        frame.say(f"  next: {flag['next_command']}")


Key = Annotated[str, typer.Argument(help="The flag's key, as `resweep flags list` shows it.")]


def flags_ack(
    key: Key,
    because: Because = "",
    url: Url = None,
    settings: frame.SettingsFile = None,
    as_json: frame.Json = False,
) -> None:
    """Say that a flag was seen; it stays open while its cause is there."""
    _say_of(key, "ack", because, url, settings, as_json)


def flags_resolve(
    key: Key,
    because: Because = "",
    url: Url = None,
    settings: frame.SettingsFile = None,
    as_json: frame.Json = False,
) -> None:
    """Clear a flag on your word; it opens again only after its cause was gone in between.

    What is still found stays silent: use `ack` where somebody should go on being told.
    """
    _say_of(key, "resolve", because, url, settings, as_json)


def _say_of(
    key: str, action: str, because: str, url: str | None, settings: str | None, as_json: bool
) -> None:
    from resweep.serve.access import access

    with access(frame.settings_of(settings).settings, url) as agent:
        flag = agent.say_of_flag(key, action, me(), because)
    if as_json:
        frame.print_json(flag)
    else:
        _say_flag(flag)


Pipeline = Annotated[str, typer.Argument(help="The pipeline's name.")]
Span = Annotated[str | None, typer.Option("--for", metavar="TIME", help="At most this long: 30m, 2h, 1d.")]


def maintenance_start(
    pipeline: Pipeline,
    span: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help="At most this long: 30m, 2h, 1d.")
    ] = None,
    because: Because = "",
    url: Url = None,
    settings: frame.SettingsFile = None,
    as_json: frame.Json = False,
) -> None:
    """Announce work on a pipeline: flags are recorded, nobody is paged."""
    work = {
        "pipeline": pipeline,
        "action": "start",
        "seconds": _seconds(span),
        "because": because,
        "by": me(),
    }
    _maintain(work, url, settings, as_json)


def maintenance_list(
    url: Url = None, settings: frame.SettingsFile = None, as_json: frame.Json = False
) -> None:
    """Show what work is announced, and what was."""
    from resweep.serve.access import access

    with access(frame.settings_of(settings).settings, url) as agent:
        told = agent.maintenances()
    if as_json:
        frame.print_json(told)
        return
    rows = [
        [
            one["pipeline"],
            _at(one["started"]),
            _at(one["ended"] or one["until"]),
            one["who"] or "-",
            one["because"] or "-",
        ]
        for one in told["all"]
    ]
    frame.table("", ["pipeline", "from", "until", "by", "because"], rows)
    frame.say(_under(told["now"]))


def _at(ts: float | None) -> str:
    return "-" if ts is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(ts))


def _under(names: list[str]) -> str:
    return f"under announced work now: {', '.join(names)}" if names else "no work is announced now"


def maintenance_end(
    pipeline: Pipeline, url: Url = None, settings: frame.SettingsFile = None, as_json: frame.Json = False
) -> None:
    """End announced work on a pipeline."""
    _maintain({"pipeline": pipeline, "action": "end", "by": me()}, url, settings, as_json)


def _maintain(work: Mapping[str, object], url: str | None, settings: str | None, as_json: bool) -> None:
    from resweep.serve.access import access

    with access(frame.settings_of(settings).settings, url) as agent:
        told = agent.maintain(dict(work))
    if as_json:
        frame.print_json(told)
        return
    frame.say(_under(told["now"]))
    for note in told["notes"]:
        frame.say(f"note: {note}")


def _seconds(span: str | None) -> float | None:
    if span is None:
        return None
    found = _SPAN.fullmatch(span.strip())
    if found is None:
        raise UsageError(f"--for: expected a time as 30m, 2h or 1d; got {span!r}")
    return float(found[1]) * _SECONDS[found[2]]
