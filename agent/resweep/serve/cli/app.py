"""All commands, put together."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from resweep.serve.cli import agent, cases, compare, files, first, frame, status, sweep, tuned

app = typer.Typer(
    name="resweep",
    help="Says when the tuned k of a RAG retriever has expired. `resweep COMMAND --help` shows an example.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for part in (first, agent, status, tuned, sweep, compare, cases, files):
    part.register(app)


def _version(wanted: bool) -> None:
    if wanted:
        from resweep.serve.parts import version

        frame.say(f"resweep {version()}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Hold the options before a command."""


def run() -> int:
    """Run the command line and return its exit code."""
    try:
        if "--json" in sys.argv:
            return _for_a_program()
        app()
    except SystemExit as ended:
        return _code(ended.code)
    except KeyboardInterrupt:
        return frame.INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return frame.PIPE_CLOSED
    return 0


def _for_a_program() -> int:
    """Run the command line; a wrong one is told of in JSON, where typer would draw a box."""
    try:
        return _code(app(standalone_mode=False))
    except Exception as error:
        told = getattr(error, "format_message", None)  # typer's own errors, wherever it takes them from
        if told is None:
            raise
        return frame.fail(told(), frame.COMMAND_LINE, as_json=True)


def _code(code: object) -> int:
    return code if isinstance(code, int) else 0 if code is None else frame.INTERNAL
