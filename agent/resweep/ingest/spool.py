"""Batches out of the spool folder, oldest first; a file goes only when the store has its batch.

Recorders put files there under their final name in one step, so a file that cannot be read is damage. It is
moved to `bad/` with the reason beside it: one bad file must not hold up the others, and nothing is thrown
away. What may be readable later (a newer format, no permission) is left and looked at again now and then.
Files that recorders do not make are not touched.
"""

from __future__ import annotations

import logging
import os
import re
import stat
from pathlib import Path
from typing import NamedTuple

from resweep.domain.batch import decode_batch
from resweep.domain.clock import Clock, SystemClock
from resweep.domain.errors import InputError, NewerFormatError, StoreError
from resweep.ingest.intake import Intake

log = logging.getLogger("resweep.ingest")

BATCH_NAME = re.compile(r"[0-9A-Za-z_-]{1,64}\.\d{10}\.[ws]\.json")
BATCH_MAX = 64 << 20  # bytes; recorders close a batch long before
LOOK_AGAIN_S = 60.0
BACKOFF_S = (1.0, 2.0, 4.0, 8.0, 15.0)  # seconds of rest after 1, 2, … refusals of the store in a row


class SpoolFile(NamedTuple):
    """One batch that waits: when it was written (ns), its name and size in bytes."""

    written: int
    name: str
    size: int


class Left(NamedTuple):
    """Why a batch was left where it is, and until when (unix seconds)."""

    reason: str
    until: float


class Spool:
    """Reads one folder. `at_most` bounds the files of one go, so that no other job waits long.

    `left` are the batches that cannot be taken now, by name; `bad` counts those moved aside.
    """

    def __init__(
        self, folder: Path, intake: Intake, *, clock: Clock | None = None, at_most: int = 500
    ) -> None:
        self.folder = folder
        self.left: dict[str, Left] = {}
        self.bad = 0
        self._intake = intake
        self._clock = clock or SystemClock()
        self._at_most = at_most
        self._ending = False
        self._refusals = 0
        self._rest_until = 0.0
        self._refusal: StoreError | None = None

    def waiting(self) -> list[SpoolFile]:
        """Return the batches in the folder, oldest first; empty where there is no folder."""
        try:
            with os.scandir(self.folder) as entries:
                found = [file for entry in entries if (file := _file(entry))]
        except FileNotFoundError:
            return []
        return sorted(found)

    def run(self) -> int:
        """Take what waits; return how many files were looked into.

        Raises StoreError where the store refuses: the file stays, and the store is left alone for a while.
        """
        now = self._clock.now()
        if self._refusal is not None and now < self._rest_until:
            raise self._refusal
        files = self.waiting()
        names = {file.name for file in files}
        self.left = {name: left for name, left in self.left.items() if name in names}
        todo = [file for file in files if not self._rests(file.name, now)][: self._at_most]
        for file in todo:
            if self._ending:
                break
            self._take(self.folder / file.name)
        self._refusals, self._refusal = 0, None
        return len(todo)

    def end(self) -> None:
        """Take no further file: the agent ends, and what waits is there for the next one."""
        self._ending = True

    def _rests(self, name: str, now: float) -> bool:
        left = self.left.get(name)
        return left is not None and now < left.until

    def _take(self, path: Path) -> None:
        try:
            self._intake.take(decode_batch(_read(path)))
        except StoreError as error:
            self._rest(error)
            raise
        except (NewerFormatError, OSError) as error:
            self._leave(path, error)
        except InputError as error:
            self._set_aside(path, error)
        except Exception as error:  # a batch that trips the agent must not trip it for ever
            log.exception("batch %s could not be applied", path.name)
            self._set_aside(path, error)
        else:
            self._finish(path)

    def _finish(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:  # it will be known as a duplicate
            self._leave(path, error)

    def _rest(self, error: StoreError) -> None:
        seconds = BACKOFF_S[min(self._refusals, len(BACKOFF_S) - 1)]
        self._refusals += 1
        self._refusal = error
        self._rest_until = self._clock.now() + seconds

    def _leave(self, path: Path, error: Exception) -> None:
        if isinstance(error, FileNotFoundError):  # its recorder gave it up for space
            return
        reason = str(error)
        if path.name not in self.left:
            log.warning("batch %s waits: %s", path.name, reason)
        self.left[path.name] = Left(reason, self._clock.now() + LOOK_AGAIN_S)

    def _set_aside(self, path: Path, error: Exception) -> None:
        reason = f"{type(error).__name__}: {error}"
        bad = self.folder / "bad"
        try:
            bad.mkdir(mode=0o700, exist_ok=True)
            path.replace(bad / path.name)
            (bad / f"{path.name}.reason").write_text(reason + "\n", "utf-8")
        except OSError as trouble:
            self._leave(path, trouble)
            return
        self.bad += 1
        self._intake.refuse()
        log.warning("batch %s moved to %s: %s", path.name, bad, reason)


def _file(entry: os.DirEntry[str]) -> SpoolFile | None:
    """Return a waiting batch; None for what is none, symbolic links among it."""
    if not BATCH_NAME.fullmatch(entry.name):
        return None
    try:
        found = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None
    return SpoolFile(found.st_mtime_ns, entry.name, found.st_size) if stat.S_ISREG(found.st_mode) else None


def _read(path: Path) -> bytes:
    with path.open("rb") as stream:
        body = stream.read(BATCH_MAX + 1)
    if len(body) > BATCH_MAX:
        raise InputError(f"expected a batch of at most {BATCH_MAX} bytes; the file is larger")
    return body
