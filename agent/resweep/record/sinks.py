"""Where batches go: a folder, an agent, nowhere, or an object of the user's."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path

from resweep.domain.batch import Batch
from resweep.domain.errors import UsageError
from resweep.domain.ports import Sink
from resweep.paths import homes, spool_folder
from resweep.record.spool import SPOOL_BYTES, SpoolSink

_log = logging.getLogger("resweep")


class NullSink:
    """Takes nothing: this process shows its own metrics and needs no agent."""

    exposes = True

    def write(self, batch: Batch) -> None:
        """Let the batch go."""

    def close(self) -> None:
        """Nothing is kept open."""


class NowhereSink:
    """Stands in while no spool folder can be written: refuses each batch until there is one."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ
        self._found: SpoolSink | None = None

    def write(self, batch: Batch) -> None:
        """Put the batch into a folder that has become writable; raises OSError where there is none."""
        if self._found is None:
            folder = spool_folder(self._environ)
            if folder is None:
                raise OSError("no folder for the spool can be written")
            self._found = SpoolSink(folder, _spool_bytes(self._environ))
        self._found.write(batch)

    def close(self) -> None:
        """Nothing is kept open."""


def choose(wanted: object, environ: Mapping[str, str] = os.environ, *, token: str | None = None) -> Sink:
    """Return the sink that `wanted` stands for.

    Takes a sink object, "none", "http://…", "spool:PATH", a path, or None for the default spool. Raises
    UsageError for anything else, and for a scheme other than http and https.
    """
    if wanted is None:
        return _default_spool(environ)
    if isinstance(wanted, Path):
        return SpoolSink(wanted, _spool_bytes(environ))
    if isinstance(wanted, str):
        return _by_name(wanted.strip(), environ, token)
    if hasattr(wanted, "write") and hasattr(wanted, "close"):
        return wanted
    raise UsageError(
        f"expected sink to be 'none', 'spool:PATH', an http URL "
        f"or an object with write and close; got {type(wanted).__name__}"
    )


def _by_name(name: str, environ: Mapping[str, str], token: str | None) -> Sink:
    if name == "none":
        return NullSink()
    if name.startswith(("http://", "https://")):
        from resweep.record.http import HttpSink  # not needed, and not light, with a spool

        return HttpSink(name, token or environ.get("RESWEEP_TOKEN"))
    if name in ("", "spool"):
        return _default_spool(environ)
    if name.startswith("spool:"):
        return SpoolSink(Path(name.removeprefix("spool:")).expanduser().absolute(), _spool_bytes(environ))
    raise UsageError(f"expected a sink like 'none', 'spool:PATH' or 'http://host:9464'; got {name!r}")


def _default_spool(environ: Mapping[str, str]) -> Sink:
    folder = spool_folder(environ)
    return NowhereSink(environ) if folder is None else SpoolSink(folder, _spool_bytes(environ))


def tried(environ: Mapping[str, str] = os.environ) -> str:
    """Return the folders that may hold the spool, for a message."""
    return ", ".join(str(folder / "spool") for folder in homes(environ)) or "none (no home folder is known)"


def _spool_bytes(environ: Mapping[str, str]) -> int:
    text = environ.get("RESWEEP_SPOOL_BYTES", "")
    if text.isdigit() and int(text) > 0:
        return int(text)
    if text:
        _log.warning("RESWEEP_SPOOL_BYTES=%r is not usable (expected a whole number above 0)", text)
    return SPOOL_BYTES
