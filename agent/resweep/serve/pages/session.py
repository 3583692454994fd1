"""Who is signed in: a signed cookie, and the key it is signed with."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
from pathlib import Path

import msgspec
from itsdangerous import BadData, URLSafeTimedSerializer

from resweep import paths
from resweep.serve.roles import Role, may

COOKIE = "resweep_session"
KEY_FILE = "session_key"
NAME_MAX = 60  # characters


class Visitor(msgspec.Struct, frozen=True, kw_only=True):
    """A person on the pages. Every form they send carries `csrf`; `signed_in` where a cookie says so."""

    role: Role
    name: str
    csrf: str
    signed_in: bool = True

    def may(self, role: Role) -> bool:
        """Whether this person may do what a role may."""
        return may(self.role, role)


class _Claims(msgspec.Struct, kw_only=True):
    """What the cookie holds: `proof` ties it to the token it was given for."""

    role: Role
    name: str
    csrf: str
    proof: str


def key_of(home: Path) -> bytes:
    """Return the key of this home's sessions; made at first need, readable by its owner alone.

    Of two agents that start at once, the second takes the first one's.
    """
    path = home / KEY_FILE
    if not path.exists():
        part = path.with_suffix(f".{os.getpid()}.part")
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, paths.FILE_MODE)
        with os.fdopen(handle, "wb") as stream:
            stream.write(secrets.token_hex(32).encode())
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(part)
        part.unlink()
    return path.read_bytes()


class Sessions:
    """Makes and reads cookies. A cookie ends with its time, its key, or the token it was given for."""

    def __init__(self, key: bytes, seconds: float) -> None:
        self._key = key
        self._seconds = int(seconds)
        self._serializer = URLSafeTimedSerializer(key, salt="resweep.session")

    def give(self, role: Role, name: str, token: str) -> str:
        """Return the value of a new cookie."""
        claims = _Claims(role=role, name=name, csrf=secrets.token_urlsafe(24), proof=self._proof(token))
        return str(self._serializer.dumps(msgspec.to_builtins(claims)))

    def read(self, cookie: str, tokens: dict[Role, str]) -> Visitor | None:
        """Return whose cookie it is; None for one that is forged, past its time or of a token replaced."""
        try:
            claims = msgspec.convert(self._serializer.loads(cookie, max_age=self._seconds), _Claims)
        except (BadData, msgspec.ValidationError):
            return None
        token = tokens.get(claims.role)
        if token is None or not hmac.compare_digest(self._proof(token), claims.proof):
            return None
        return Visitor(role=claims.role, name=claims.name, csrf=claims.csrf)

    def csrf_of(self, name: str) -> str:
        """Return the form token of somebody whom a proxy signed in."""
        return hmac.new(self._key, f"csrf:{name}".encode(), hashlib.sha256).hexdigest()

    def _proof(self, token: str) -> str:
        return hmac.new(self._key, f"token:{token}".encode(), hashlib.sha256).hexdigest()[:24]
