"""However a command ends, it ends in the same way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from resweep.domain.errors import AddressInUseError, ResweepError, StoreFullError, UsageError
from resweep.serve.cli import frame
from resweep.serve.cli.app import app

ROOT = Path(__file__).parents[2]
SOURCES = os.pathsep.join((str(ROOT / "agent"), str(ROOT / "exporters")))


def ending(raised: BaseException, *words: str) -> tuple[int, str, str]:
    """Return exit code, stdout and stderr of a command that raises."""
    small = typer.Typer()

    @small.callback()
    def _main() -> None:
        """Keep `fail` a subcommand."""

    def fail(as_json: frame.Json = False) -> None:
        """Raise."""
        raise raised

    frame.command(small, "fail", example="fail")(fail)
    done = CliRunner().invoke(small, ["fail", *words])
    return done.exit_code, done.stdout, done.stderr


def resweep(*words: str, home: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a process."""
    variables = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": SOURCES, **environ}
    command = [sys.executable, "-m", "resweep", *words]
    return subprocess.run(command, env=variables, cwd=home, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("error", "code"), [(UsageError("x"), 2), (StoreFullError("x"), 3), (AddressInUseError("x"), 4)]
)
def test_what_is_raised_on_purpose_is_one_line_and_its_exit_code(error: ResweepError, code: int) -> None:
    """The message, nothing else."""
    assert ending(error) == (code, "", "resweep: x\n")


def test_an_internal_error_is_2_and_shows_no_stack() -> None:
    """Never 1, which means something in `check`."""
    code, out, err = ending(ZeroDivisionError("oops"))
    assert (code, out) == (2, "")
    assert err == "resweep: internal error: ZeroDivisionError: oops (RESWEEP_DEBUG=1 shows where)\n"


def test_ctrl_c_is_130_without_a_word() -> None:
    """The user knows."""
    assert ending(KeyboardInterrupt()) == (130, "", "")


def test_with_json_an_error_is_a_document_too() -> None:
    """On stdout, for the program that reads it."""
    code, out, err = ending(UsageError("no such thing"), "--json")
    assert json.loads(out) == {"schema": "resweep.error/1", "error": "no such thing", "exit_code": 2}
    assert (code, err) == (2, "resweep: no such thing\n")


@pytest.mark.parametrize("words", [["check", "--json"], ["flags", "lits", "--json"]])
def test_with_json_a_wrong_command_line_is_a_document_too(words: list[str], tmp_path: Path) -> None:
    """No box for a person to look at."""
    done = subprocess.run(
        [sys.executable, "-m", "resweep", *words],
        env={"PYTHONPATH": SOURCES, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, json.loads(done.stdout)["exit_code"]) == (2, 2)
    assert done.stderr == f"resweep: {json.loads(done.stdout)['error']}\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [(["stauts"], "status"), (["flags", "lits"], "list"), (["check", "x", "--jsn"], "--json")],
)
def test_a_slip_is_answered_with_the_nearest_word(words: list[str], says: str) -> None:
    """Exit 2, no stack."""
    done = CliRunner().invoke(app, words, env={"COLUMNS": "200", "NO_COLOR": "1"})
    assert done.exit_code == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_the_start_loads_no_database_and_no_web_framework(tmp_path: Path) -> None:
    """`--help` has to be quick; commands load what they need when they run."""
    heavy = ("sqlalchemy", "starlette", "uvicorn", "rich", "tomlkit", "numpy")
    code = f"import sys, resweep.serve.cli.app; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": SOURCES, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"


def test_a_reader_that_leaves_is_no_error(tmp_path: Path) -> None:
    """`resweep rules | true`: quiet, and the code that a broken pipe gives."""
    variables = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": SOURCES}
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "resweep", "rules"]
    done = subprocess.run(command, env=variables, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def _heed_ctrl_c() -> None:
    """Undo what a shell does to programs in its background: they ignore Ctrl-C, and so do their children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_ctrl_c_ends_a_process_with_130_and_no_stack(tmp_path: Path) -> None:
    """Whatever it was doing: here, reading a file that never ends."""
    fifo = tmp_path / "events.jsonl"
    os.mkfifo(fifo)
    variables = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": SOURCES}
    command = [sys.executable, "-m", "resweep", "replay", str(fifo)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, env=variables, stdout=pipe, stderr=pipe, preexec_fn=_heed_ctrl_c)
    with fifo.open("wb"):  # opens once the command reads
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, b"", b"")


def test_without_the_agent_extra_it_says_what_to_install(tmp_path: Path) -> None:
    """A missing library of the extra, told in one line."""
    (tmp_path / "typer.py").write_text("raise ModuleNotFoundError(\"No module named 'typer'\", name='typer')")
    done = resweep("status", home=tmp_path, PYTHONPATH=os.pathsep.join((str(tmp_path), SOURCES)))
    assert done.returncode == 2
    assert "pip install 'resweep[agent]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_no_color_where_none_is_wanted(tmp_path: Path) -> None:
    """NO_COLOR, and any output that is no terminal."""
    done = resweep("--help", home=tmp_path, NO_COLOR="1", FORCE_COLOR="")
    assert done.returncode == 0
    assert "\x1b[3" not in done.stdout
