"""Text files, plain or gzip, read line by line with the place of every complaint."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

from resweep.domain.errors import InputError


class Line(NamedTuple):
    """One line that is not blank, and its number from 1."""

    number: int
    text: str


def open_text(path: Path) -> IO[str]:
    """Open a text file, gzip told by its first bytes. Raises InputError where it cannot be opened."""
    try:
        with path.open("rb") as probe:
            zipped = probe.read(2) == b"\x1f\x8b"
        return gzip.open(path, "rt", encoding="utf-8-sig") if zipped else path.open(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"expected a readable file at {path}: {error.strerror or error}") from None


def lines(path: Path) -> Iterator[Line]:
    """Yield the lines that are not blank. Raises InputError where the file is not UTF-8 or breaks off."""
    return (Line(number, text) for number, text in numbered(path))


def numbered(path: Path) -> Iterator[tuple[int, str]]:
    """Yield what `lines` does as plain pairs, for files of millions of lines."""
    with open_text(path) as stream:
        number = 0
        try:
            for number, text in enumerate(stream, 1):
                if text.strip():
                    yield number, text
        except UnicodeDecodeError as error:
            raise InputError(
                f"{path}, after line {number}: expected UTF-8 text, got {error.reason}; convert the file"
            ) from None
        except (EOFError, zlib.error, OSError) as error:
            raise InputError(f"{path}: the file breaks off after line {number} ({error})") from None


def first_line(path: Path) -> str:
    """Return the first line that is not blank, stripped; raises InputError for a file without any."""
    for line in lines(path):
        return line.text.strip()
    raise InputError(f"expected lines in {path}, got an empty file")
