"""The agent's own sweep: the command a person would run, in a process of its own, within a budget.

In a process of its own because the retriever is loaded afresh, and because a sweep takes memory and time that
the agent needs for its own work.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import msgspec

from resweep.domain.batch import ConfigRecord
from resweep.domain.errors import ResweepError, UsageError
from resweep.domain.fingerprint import fingerprint
from resweep.domain.invalidation import InvalidationRules
from resweep.schedule.sweepdesk import Ended, SweepWish
from resweep.serve.places import Places
from resweep.serve.settings_sources import as_environment
from resweep.settings import Settings

HOUR_S = 3600.0
STOP_S = 2.0  # that it has to put down what it was at
TAIL = 4000  # characters of what it says that are looked at


def wish_of(settings: Settings) -> SweepWish | None:
    """Return whose sweeps the agent is to run, None where it was not told.

    Raises UsageError for a sweep by itself without a retriever, a pipeline or a budget.
    """
    section = settings.sweep
    if section.by_itself:
        needed = {
            "retriever": section.retriever,
            "pipeline": section.pipeline,
            "max_calls": section.max_calls,
        }
        missing = [f"sweep.{name}" for name, value in needed.items() if value is None]
        if missing:
            raise UsageError(
                f"expected {' and '.join(missing)} beside sweep.by_itself: what the agent sweeps, whose it "
                "is, and how many calls it may make"
            )
    if section.pipeline is None or section.retriever is None:
        return None
    return SweepWish(
        pipeline=section.pipeline, by_itself=section.by_itself, rest_s=section.rest_hours * HOUR_S
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSweep:
    """Starts `resweep sweep` for a config. Raises UsageError where the config is not whole."""

    settings: Settings
    where: Places
    rules: InvalidationRules

    def __call__(self, config: ConfigRecord) -> Process:
        """Return the sweep under way."""
        self._check(config)
        folder = Path(tempfile.mkdtemp(prefix="own-sweep-", dir=self.where.home))
        described = folder / "config.json"
        described.write_bytes(
            msgspec.json.encode({"pipeline": config.pipeline, "config": dict(config.document)})
        )
        section = self.settings.sweep
        command = [sys.executable, "-m", "resweep", "sweep", config.pipeline, "--record", "--json"]
        command += ["--retriever", str(section.retriever), "--config", str(described)]
        return Process(command, self._environment(), folder)

    def _check(self, config: ConfigRecord) -> None:
        try:
            same = fingerprint(config.document, rules=self.rules).basis_hash == config.basis
        except ResweepError:
            same = False
        if not same:
            raise UsageError(
                f"config {config.config} of {config.pipeline} is not known here by all its parts: sweep it "
                "where its file is (resweep sweep --config FILE --record)"
            )

    def _environment(self) -> Mapping[str, str]:
        own = {"RESWEEP_HOME": str(self.where.home), "RESWEEP_SINK": "none"}
        return {**os.environ, **as_environment(self.settings), **own}


class Process:
    """A command under way, with its words in a folder of its own that goes with it."""

    def __init__(self, command: list[str], environment: Mapping[str, str], folder: Path) -> None:
        self._folder = folder
        self._out = folder / "out"
        self._err = folder / "err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._process = _started(command, environment, out, err)

    def ended(self) -> Ended | None:
        """Return how it ended, None while it runs."""
        code = self._process.poll()
        if code is None:
            return None
        told = _proposal(self._out) if code == 0 else _last_line(self._err)
        self._clear()
        return Ended(code=code, told=told)

    def stop(self) -> None:
        """End it, with force where it does not end in two seconds."""
        self._process.terminate()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._clear()

    def _clear(self) -> None:
        for path in self._folder.glob("*"):
            path.unlink(missing_ok=True)
        self._folder.rmdir()


def _started(
    command: list[str], environment: Mapping[str, str], out: IO[bytes], err: IO[bytes]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603  (our own command; its arguments are the settings' own)
        command, env=dict(environment), stdin=subprocess.DEVNULL, stdout=out, stderr=err
    )


def _proposal(out: Path) -> str:
    """Return in words what a report proposes."""
    try:
        report = msgspec.json.decode(out.read_bytes())
        chosen, best = report["chosen"], ", ".join(map(str, report["best_set"]))
        return (
            f"proposes context_k {chosen['context_k']} of the set {best} for {report['objective']}, on "
            f"{report['n_cases']} cases; report {report['report_id']}"
        )
    except (OSError, msgspec.MsgspecError, KeyError, TypeError) as error:
        return f"it ended, and its report cannot be read: {error}"


def _last_line(err: Path) -> str:
    try:
        lines = err.read_text("utf-8", "replace")[-TAIL:].strip().splitlines()
    except OSError:
        return ""
    return lines[-1] if lines else ""
