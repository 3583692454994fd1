"""The spool: a folder of batches, one file each, that an agent on the same machine takes away.

A file appears under its final name in one step, so nothing is read half written. All processes share one
folder and one bound in bytes; where it is reached the oldest samples go first, then the oldest windows.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, time
from typing import NamedTuple

from resweep.domain.batch import Batch, decode_batch, encode_batch
from resweep.domain.errors import InputError
from resweep.paths import FILE_MODE, FOLDER_MODE

SPOOL_BYTES = 256 << 20
_LOOK_EVERY_S = 10.0  # between two looks at the whole folder, unless much was written meanwhile
_STALE_S = 3600.0  # after which a temporary file belongs to nobody


class Waiting(NamedTuple):
    """A batch in the folder; `order` sorts samples before windows, older before newer."""

    order: tuple[bool, float]
    path: str
    size: int


class SpoolSink:
    """Writes batches into a folder. `waiting_bytes` is what the folder held when last looked at."""

    def __init__(self, folder: Path | str, max_bytes: int = SPOOL_BYTES) -> None:
        self.folder = Path(folder)
        self.max_bytes = max_bytes
        self.waiting_bytes = 0
        self.own_waiting = 0
        self._dropped: Counter[tuple[str, str]] = Counter()
        self._looked_at = -_LOOK_EVERY_S
        self._written_since = 0

    def write(self, batch: Batch) -> None:
        """Put one batch into the folder. Raises OSError where it cannot be written now."""
        body = encode_batch(batch)
        self._make_room(len(body), batch.writer)
        name = f"{batch.writer}.{batch.seq:010d}.{batch.kind[0]}.json"
        temporary = self.folder / f".{name}.tmp"
        self.folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        try:
            _write(temporary, body)
            os.replace(temporary, self.folder / name)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        self.waiting_bytes += len(body)
        self._written_since += len(body)

    def take_dropped(self) -> Counter[tuple[str, str]]:
        """Return how many records were given up for want of room, by (pipeline, config), since last asked."""
        dropped, self._dropped = self._dropped, Counter()
        return dropped

    def close(self) -> None:
        """Nothing is kept open."""

    def _make_room(self, wanted: int, writer: str) -> None:
        due = monotonic() - self._looked_at > _LOOK_EVERY_S or self._written_since > self.max_bytes // 64
        if not due and self.waiting_bytes + wanted <= self.max_bytes:
            return
        waiting = sorted(_waiting(self.folder))
        self._looked_at, self._written_since = monotonic(), 0
        self.waiting_bytes = sum(file.size for file in waiting)
        self.own_waiting = sum(os.path.basename(file.path).startswith(writer) for file in waiting)
        for file in waiting:
            if self.waiting_bytes + wanted <= self.max_bytes:
                return
            self._give_up(file)

    def _give_up(self, file: Waiting) -> None:
        try:
            batch = decode_batch(Path(file.path).read_bytes())
            os.unlink(file.path)
        except (OSError, InputError):
            return  # the agent took it meanwhile, or it is not ours to judge
        self.waiting_bytes -= file.size
        for event in batch.events:
            self._dropped[event.pipeline, event.config] += 1
        for window in batch.windows:
            self._dropped[window.pipeline, window.config] += window.get("retrievals")


def _write(path: Path, body: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE)
    with os.fdopen(descriptor, "wb") as file:
        file.write(body)


def _waiting(folder: Path) -> Iterator[Waiting]:
    """The batches in a folder; temporary files that a dead process left are removed."""
    try:
        entries = list(os.scandir(folder))
    except FileNotFoundError:
        return
    for entry in entries:
        try:
            found = entry.stat(follow_symlinks=False)
            if entry.name.endswith((".w.json", ".s.json")):
                yield Waiting((entry.name.endswith(".w.json"), found.st_mtime), entry.path, found.st_size)
            elif entry.name.endswith(".json.tmp"):
                _remove_stale(entry.path, found.st_mtime)
        except FileNotFoundError:
            continue


def _remove_stale(path: str, written: float) -> None:
    if time() - written > _STALE_S:
        os.unlink(path)
