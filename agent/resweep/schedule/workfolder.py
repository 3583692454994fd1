"""Work for recorders that hand over through the spool: the same desk, reached through files."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path

from resweep.domain.errors import InputError
from resweep.domain.work import decode_answer, decode_offer, encode
from resweep.paths import FILE_MODE, FOLDER_MODE
from resweep.schedule.due import Due
from resweep.schedule.workdesk import WorkDesk

log = logging.getLogger("resweep.schedule")

BODY_MAX = 8 << 20  # bytes
STALE_S = 600.0  # after which work that nobody took is taken back


class WorkFolder:
    """Reads offers and answers in a folder, and puts down what is asked. One agent at a time uses it."""

    def __init__(self, folder: Path, desk: WorkDesk) -> None:
        self._folder = folder
        self._desk = desk

    def run(self, run: Due | None = None) -> None:
        """Take what was put down since."""
        if not self._folder.is_dir():
            return
        for body in self._bodies("done"):
            try:
                self._desk.answer(decode_answer(body))
            except InputError as error:
                log.warning("an answer to work could not be used: %s", error)
        for body in self._bodies("offers", unless="todo"):  # one that has work waits until it took that
            try:
                self._lease(body)
            except InputError as error:
                log.warning("an offer of work could not be used: %s", error)
        self._take_back()

    def _lease(self, body: bytes) -> None:
        offer = decode_offer(body)
        if not offer.writer.isalnum():
            raise InputError(f"expected a writer id of letters and digits; got {offer.writer!r}")
        self._put(f"{offer.writer}.json", encode(self._desk.lease(offer)))

    def _bodies(self, kind: str, unless: str | None = None) -> Iterator[bytes]:
        """Yield the files of a kind, each once; those with one of the same name elsewhere stay."""
        for path in sorted((self._folder / kind).glob("*.json")):
            if unless is not None and (self._folder / unless / path.name).exists():
                continue
            try:
                body = path.read_bytes() if path.stat().st_size <= BODY_MAX else b""
                path.unlink()
            except OSError:
                continue
            yield body

    def _put(self, name: str, body: bytes) -> None:
        folder = self._folder / "todo"
        folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        part = folder / f".{name}.tmp"
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE)
        with os.fdopen(descriptor, "wb") as file:
            file.write(body)
        os.replace(part, folder / name)

    def _take_back(self) -> None:
        for path in (self._folder / "todo").glob("*.json"):
            try:
                if time.time() - path.stat().st_mtime > STALE_S:
                    path.unlink()
            except OSError:
                continue
