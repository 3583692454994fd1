"""The address to listen on: read, judged, bound."""

from __future__ import annotations

import errno
import ipaddress
import socket
from typing import NamedTuple

from resweep.domain.errors import AddressInUseError, UsageError

BACKLOG = 256


class Endpoint(NamedTuple):
    """Host and port; port 0 takes a free one."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def endpoint(given: str) -> Endpoint:
    """Read `HOST:PORT`, `[IPV6]:PORT`, `:PORT` (loopback) or `HOST`. Raises UsageError."""
    host, colon, port = given.strip().rpartition(":")
    if given.endswith("]") or not colon:
        host, port = given.strip(), "9464"
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if not port.isdecimal() or int(port) > 65535:
        raise UsageError(
            "the address to listen on (--listen, RESWEEP_LISTEN or [agent] listen): expected HOST:PORT, as "
            f"127.0.0.1:9464; got {given!r}"
        )
    return Endpoint(host, int(port))


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine can reach a host name or address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_public(at: Endpoint, token: str | None) -> None:
    """Raise UsageError where others could reach an agent that has no token of the user's."""
    if token is None and not is_loopback(at.host):
        raise UsageError(
            f"expected RESWEEP_TOKEN to be set before listening on {at}, which others can reach: set it "
            "(`export RESWEEP_TOKEN=$(openssl rand -hex 32)`) or listen on 127.0.0.1"
        )


def bind(at: Endpoint) -> socket.socket:
    """Return a socket bound to an address.

    Raises AddressInUseError where it is taken, UsageError where it cannot be ours.
    """
    family = socket.AF_INET6 if ":" in at.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((at.host, at.port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise AddressInUseError(
                f"expected {at} to be free; another program listens there: stop it, or take another port "
                "with --listen 127.0.0.1:PORT (port 0 takes a free one)"
            ) from None
        raise UsageError(f"expected to listen on {at}; {error.strerror or error}: check --listen") from None
    listener.setblocking(False)
    return listener


def bound(listener: socket.socket) -> Endpoint:
    """Return the address a socket got."""
    host, port = listener.getsockname()[:2]
    return Endpoint(host, port)
