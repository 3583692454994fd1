"""`resweep agent`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from resweep.serve.cli import frame

if TYPE_CHECKING:
    from resweep.serve.listen import Endpoint
    from resweep.serve.places import Places

EXITS = {
    0: "ended by SIGTERM or Ctrl-C, with nothing lost",
    4: "the address to listen on is taken",
    5: "another agent leads on this store, and --standby was not given",
}


def register(app: typer.Typer) -> None:
    """Add the command."""
    frame.command(app, "agent", example="resweep agent --listen 127.0.0.1:9464", exits=EXITS)(agent)


def agent(
    listen: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Listen here; port 0 takes a free one.")
    ] = None,
    standby: Annotated[
        bool, typer.Option("--standby", help="Wait while another agent leads, and take over.")
    ] = False,
    store: Annotated[str | None, typer.Option(metavar="URL", help="Database URL or SQLite file.")] = None,
    home: Annotated[str | None, typer.Option(metavar="DIR", help="Folder of store, spool and token.")] = None,
    lock: Annotated[str | None, typer.Option(metavar="FILE", help="resweep.lock to follow.")] = None,
    log_format: Annotated[str | None, typer.Option(metavar="plain|json", help="How to log.")] = None,
    settings: frame.SettingsFile = None,
    as_json: frame.Json = False,
) -> None:
    """Run the agent: take in what recorders hand over, judge, expose /metrics and the API."""
    from resweep.serve.run import leave, run

    flags = frame.options(
        agent__listen=listen,
        agent__standby=standby or None,
        agent__store=store,
        agent__home=home,
        agent__lock_file=lock,
        agent__log_format=log_format,
    )
    code = run(frame.settings_of(settings, flags).settings, _Told(as_json))
    leave(code)
    raise typer.Exit(code)


class _Told:
    """Says where the agent listens, as a person or a program wants to read it."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json

    def __call__(self, at: Endpoint, where: Places) -> None:
        if self.as_json:
            told = {"listening": f"http://{at}", "home": str(where.home), "spool": str(where.spool)}
            frame.print_json_line(told)
            return
        frame.say(f"resweep agent listens on http://{at}")
        frame.say(f"  home   {where.home}")
        frame.say(f"  spool  {where.spool}")
        if where.token.exists():
            frame.say(f"  token  in {where.token}")
        frame.flush()
