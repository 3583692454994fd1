"""What all commands share: how they end, how they print, how they are described.

A command ends with 0, or raises `typer.Exit` with a code of its own. What resweep raises on purpose becomes
one message on stderr and the error's exit code; nothing that a user can do wrong shows a stack trace.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, ParamSpec

import typer

from resweep.domain.errors import ResweepError

if TYPE_CHECKING:
    from resweep.serve.settings_sources import Loaded

P = ParamSpec("P")

INTERRUPTED = 130
PIPE_CLOSED = 141
INTERNAL = 2
COMMAND_LINE = 2
ERROR_SCHEMA = "resweep.error/1"

# Codes that any command may end with; the others are named by the command.
COMMON_EXITS: Mapping[int, str] = {
    0: "done",
    2: "usage, unreadable input, or an internal error",
    3: "the store refuses: full, read-only, or locked",
    INTERRUPTED: "interrupted by Ctrl-C",
}

# Of commands that ask an agent, or its store while none runs.
ACCESS_EXITS: Mapping[int, str] = {5: "an agent leads on the store and does not answer here"}

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
SettingsFile = Annotated[
    str | None, typer.Option("--settings", metavar="FILE", help="Read settings from FILE.")
]


def command(
    app: typer.Typer, name: str, *, example: str, exits: Mapping[int, str] | None = None
) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Register a command with its example and the exit codes it adds to or renames among the common ones."""
    codes = {**COMMON_EXITS, **(exits or {})}
    told = "; ".join(f"{code} {what}" for code, what in sorted(codes.items()))
    epilog = f"Example: {example}\n\nExit codes: {told}."

    def register(function: Callable[P, None]) -> Callable[P, None]:
        app.command(name, epilog=epilog)(guarded(function))
        return function

    return register


def group(name: str, what: str) -> typer.Typer:
    """Return a group of commands, such as `flags`."""
    return typer.Typer(name=name, help=what, no_args_is_help=True, add_completion=False)


def guarded(function: Callable[P, None]) -> Callable[P, None]:
    """Return the function so that it ends as every command does."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            function(*args, **kwargs)
            sys.stdout.flush()
        except ResweepError as error:
            _fail(str(error), error.exit_code, as_json=bool(kwargs.get("as_json")))
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:  # the reader has seen enough, as in `resweep status | head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(PIPE_CLOSED) from None
        except Exception as error:
            if isinstance(error, typer.Exit | typer.Abort) or os.environ.get("RESWEEP_DEBUG"):
                raise
            if type(error).__module__.startswith(("click.", "typer.")):
                raise  # a usage error, which typer words itself
            _internal(error, as_json=bool(kwargs.get("as_json")))

    return run


def _internal(error: Exception, *, as_json: bool) -> NoReturn:
    what = f"internal error: {type(error).__name__}: {error} (RESWEEP_DEBUG=1 shows where)"
    _fail(what, INTERNAL, as_json=as_json)


def fail(message: str, code: int, *, as_json: bool) -> int:
    """Tell of an error on stderr, and to a program on stdout; return the exit code."""
    print(f"resweep: {message}", file=sys.stderr)  # noqa: T201
    if as_json:
        print_json({"schema": ERROR_SCHEMA, "error": message, "exit_code": code})
    return code


def _fail(message: str, code: int, *, as_json: bool) -> NoReturn:
    raise typer.Exit(fail(message, code, as_json=as_json))


def print_json(value: object) -> None:
    """Print the one JSON document of a command."""
    import msgspec

    text = msgspec.json.format(msgspec.json.encode(value, enc_hook=_plain), indent=2).decode()
    sys.stdout.write(text + "\n")


def print_json_line(value: object) -> None:
    """Print a JSON document on one line, at once."""
    import msgspec

    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
    flush()


@contextlib.contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Send what a user's code prints to stderr: stdout is the command's own."""
    with contextlib.redirect_stdout(sys.stderr):
        yield


def flush() -> None:
    """Let what was printed be seen now."""
    sys.stdout.flush()


def settings_of(file: str | None, flags: Mapping[str, object] | None = None) -> Loaded:
    """Return the settings of a command. Raises UsageError."""
    from pathlib import Path

    from resweep.serve.settings_sources import load

    return load(Path(file) if file else None, flags=flags)


def _plain(value: object) -> object:
    raise TypeError(f"{type(value).__name__} has no place in JSON")


def say(text: str = "") -> None:
    """Print a line on stdout."""
    sys.stdout.write(text + "\n")


def table(title: str, columns: list[str], rows: list[list[str]]) -> None:
    """Print a table; without a terminal, as wide as its content, so that nothing is cut."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    for column in columns:
        shown.add_column(column, overflow="fold")
    for row in rows:
        shown.add_row(*(Text(cell) for cell in row))  # Text: what users name must not be read as markup
    console = Console() if sys.stdout.isatty() else Console(width=1000, no_color=True)
    with console.capture() as captured:
        console.print(shown)
    for line in captured.get().splitlines():
        say(line.rstrip())


def options(**named: Any) -> dict[str, Any]:
    """Return flags for `load`, by setting: `__` stands for the dot."""
    return {name.replace("__", "."): value for name, value in named.items() if value is not None}
