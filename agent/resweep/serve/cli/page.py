"""The page docs/commands.md, from the commands. `python -m resweep.serve.cli.page` prints it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import typer

from resweep.serve.cli.app import app

HEAD = """\
# Commands

This page is made from the commands by `python -m resweep.serve.cli.page`; `resweep COMMAND --help` shows the
same on a terminal. Every command takes `--json` and then prints exactly one JSON document on stdout; messages
go to stderr. A command that fails with `--json` prints
`{"schema": "resweep.error/1", "error": …, "exit_code": …}`. Settings come from `resweep.toml`, the
environment and flags: see docs/configuration.md. `NO_COLOR` is respected.

`status`, `accept`, `lock`, `flags`, `cases` and `maintenance` ask the agent of the same home folder; with
`--url` or `RESWEEP_URL` another one. While no agent runs they work on its store.

## Exit codes

| code | meaning |
|---|---|
| 0 | done (`check`: the tuned k is valid) |
| 1 | `check`: not valid; `compare`: a limit fails; `doctor`: something broken; `cases import`: bad rows |
| 2 | usage, unreadable input, or an internal error |
| 3 | the store refuses: full, read-only, or locked |
| 4 | the address to listen on is taken |
| 5 | another agent leads on this store |
| 6 | the budget of a sweep is spent or cannot suffice |
| 130 | interrupted by Ctrl-C |
| 141 | the reader of the output went away, as in `resweep status \\| head` |
"""


def render_markdown() -> str:
    """Return the whole page."""
    sections = (line for name, command in commands() for line in _section(name, command))
    return "\n".join([HEAD, *sections])


def commands() -> Iterator[tuple[str, Any]]:
    """Yield every command by its full name."""
    yield from _walk(typer.main.get_command(app), "resweep")


def _walk(at: Any, name: str) -> Iterator[tuple[str, Any]]:
    if not hasattr(at, "commands"):
        yield name, at
        return
    for part, command in at.commands.items():
        yield from _walk(command, f"{name} {part}")


def _section(name: str, command: Any) -> Iterator[str]:
    arguments = [_argument(p) for p in command.params if p.param_type_name == "argument"]
    example, exits = command.epilog.split("\n\n")
    yield f"## {' '.join([name, *arguments])}\n"
    yield f"{command.help}\n"
    yield f"```\n{example.removeprefix('Example: ')}\n```\n"
    yield "| option | what |"
    yield "|---|---|"
    yield from (_option(p) for p in command.params if p.param_type_name == "option" and p.name != "help")
    yield f"\n{exits}\n"


def _argument(parameter: Any) -> str:
    name: str = (parameter.metavar or parameter.name.upper()).strip("[]")
    return name if parameter.required else f"[{name}]"


def _option(parameter: Any) -> str:
    value = "" if parameter.is_flag else f" {parameter.metavar or 'TEXT'}"
    shown = f"{', '.join(parameter.opts)}{value}".replace("|", "\\|")
    return f"| `{shown}` | {parameter.help} |"


if __name__ == "__main__":
    sys.stdout.write(render_markdown())
