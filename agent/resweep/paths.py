"""Where resweep keeps files when nobody says otherwise. Recorder and agent find each other by this."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

FOLDER_MODE = 0o700
FILE_MODE = 0o600


def homes(environ: Mapping[str, str] = os.environ) -> Iterator[Path]:
    """Yield the folders that may be resweep's own, the preferred one first.

    `$RESWEEP_HOME`, `$XDG_STATE_HOME/resweep`, `~/.local/state/resweep`; those whose variable is not set
    are left out.
    """
    if named := environ.get("RESWEEP_HOME"):
        yield Path(named).expanduser().absolute()
    if state := environ.get("XDG_STATE_HOME"):
        yield Path(state).expanduser().absolute() / "resweep"
    try:
        user = Path(environ["HOME"]) if environ.get("HOME") else Path.home()
    except RuntimeError:  # no home folder is known for this user
        return
    yield user.absolute() / ".local" / "state" / "resweep"


def home(environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return the first of `homes` that can be written, made where it is missing; None without one."""
    return next((folder for folder in homes(environ) if usable(folder)), None)


def spool_folder(environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return the folder into which recorders put batches for an agent on the same machine."""
    return next((folder for at in homes(environ) if usable(folder := at / "spool")), None)


def usable(folder: Path) -> bool:
    """Whether a folder is there, or could be made (private to its owner), and can be written."""
    try:
        folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)
