"""The programs of the demo: started, told apart by name, and ended with it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from resweep.domain.errors import ResweepError

START_S = 30.0
STOP_S = 5.0


class DemoError(ResweepError):
    """A part of the demo did not do what it had to."""


class Children:
    """Starts programs with their output in files, and ends them all."""

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self._folder = folder
        self._env = {**os.environ, **env}
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def python(self, name: str, *args: str) -> None:
        """Start a Python module or command of this environment."""
        self.start(name, sys.executable, *args)

    def start(self, name: str, *command: str) -> None:
        """Start a program; its output goes to `NAME.log`."""
        with self.log(name).open("wb") as log:
            self._running[name] = subprocess.Popen(  # noqa: S603 - programs of the demo alone
                command, stdout=log, stderr=subprocess.STDOUT, env=self._env, cwd=self._folder
            )

    def log(self, name: str) -> Path:
        """Return the file with a program's output."""
        return self._folder / f"{name}.log"

    def wait(self, name: str, ready: Callable[[], bool]) -> None:
        """Wait until a program is ready; raises DemoError with its last words where it ends before."""
        until = time.monotonic() + START_S
        while not ready():
            if self._running[name].poll() is not None or time.monotonic() > until:
                words = self.log(name).read_text("utf-8", "replace")[-2000:].strip()
                raise DemoError(f"expected {name} to start; it did not. Its last words:\n{words}")
            time.sleep(0.05)

    def stop(self, name: str) -> None:
        """Ask a program to end and wait for it."""
        child = self._running.pop(name, None)
        if child is None:
            return
        child.terminate()
        try:
            child.wait(STOP_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()

    def stop_all(self) -> None:
        """End every program, the newest first."""
        for name in reversed(list(self._running)):
            self.stop(name)
