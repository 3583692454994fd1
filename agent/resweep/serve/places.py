"""Where an agent's files are, and its token."""

from __future__ import annotations

import logging
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

import msgspec

from resweep import paths
from resweep.domain.errors import StoreReadOnlyError, UsageError
from resweep.settings import Settings

log = logging.getLogger("resweep.serve")

TOKEN_SHORT = 16  # characters; a shorter token can be guessed


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The files of one agent."""

    home: Path
    spool: Path
    store: str

    @property
    def token(self) -> Path:
        """The file of a token that the agent made itself."""
        return self.home / "token"

    @property
    def address(self) -> Path:
        """The file that says where the agent listens."""
        return self.home / "agent.json"


class Address(msgspec.Struct, kw_only=True):
    """What an agent that listens writes down for the commands of the same user."""

    listening: str
    pid: int
    host: str


def places(settings: Settings) -> Places:
    """Return where the agent's files are. Raises StoreReadOnlyError where no folder can be written."""
    agent = settings.agent
    if agent.home is not None:
        home = Path(agent.home).expanduser().absolute()
        if not paths.usable(home):
            raise StoreReadOnlyError(_unwritable(home))
    else:
        found = paths.home()
        if found is None:
            tried = ", ".join(map(str, paths.homes())) or "none: neither RESWEEP_HOME nor HOME is set"
            raise StoreReadOnlyError(
                f"expected a folder that can be written for the agent's files; tried {tried}: "
                "set RESWEEP_HOME"
            )
        home = found
    _check_ours(home)
    spool = Path(agent.spool_dir).expanduser().absolute() if agent.spool_dir else home / "spool"
    return Places(home=home, spool=spool, store=agent.store or f"sqlite:///{home / 'resweep.db'}")


def _check_ours(home: Path) -> None:
    """Raise StoreReadOnlyError where a file of an earlier agent belongs to another user."""
    for path in (home / "token", home / "spool", *sorted(home.glob("resweep.db*"))):
        if path.exists() and not os.access(path, os.R_OK | os.W_OK):
            raise StoreReadOnlyError(_unwritable(path))


def _unwritable(path: Path) -> str:
    """Say why a file or folder cannot be used: whose it is, and who we are."""
    closest = next(at for at in (path, *path.parents) if at.exists())
    owner = closest.stat().st_uid
    return (
        f"expected to write {path}; {closest} belongs to user {owner} and this process is user "
        f"{os.getuid()}: hand it over (chown -R {os.getuid()} {closest}) or set RESWEEP_HOME"
    )


def token_of(settings: Settings, where: Places) -> str | None:
    """Return the token that was set, else the one kept in the home folder, else None."""
    if settings.agent.token:
        return settings.agent.token
    try:
        return where.token.read_text("utf-8").strip() or None
    except OSError:
        return None


def make_token(where: Places) -> str:
    """Make a token, keep it in a file for its owner alone, and return it.

    Of two agents that start at once, the second takes the first one's.
    """
    token = secrets.token_urlsafe(32)
    try:
        handle = os.open(where.token, os.O_WRONLY | os.O_CREAT | os.O_EXCL, paths.FILE_MODE)
    except FileExistsError:
        return where.token.read_text("utf-8").strip()
    with os.fdopen(handle, "w") as stream:
        stream.write(token + "\n")
    return token


def check_token(token: str | None) -> None:
    """Raise UsageError for a token that cannot stand in a header; warn of one that can be guessed."""
    if token is None:
        return
    if not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError(
            "RESWEEP_TOKEN: expected printable ASCII without spaces: make one with `openssl rand -hex 32`"
        )
    if len(token) < TOKEN_SHORT:
        log.warning("the token has %d characters and can be guessed; make it longer", len(token))


def write_address(where: Places, address: Address) -> None:
    """Write down where the agent listens; read by the commands of the same user."""
    part = where.address.with_suffix(f".{os.getpid()}.part")
    part.write_bytes(msgspec.json.encode(address))
    part.replace(where.address)


def read_address(where: Places) -> Address | None:
    """Return where an agent said it listens; None where none did."""
    try:
        return msgspec.json.decode(where.address.read_bytes(), type=Address)
    except (OSError, msgspec.MsgspecError):
        return None


def forget_address(where: Places) -> None:
    """Remove our own address, not that of an agent that came after us."""
    address = read_address(where)
    if address is not None and address.pid == os.getpid():
        where.address.unlink(missing_ok=True)
