"""Which addresses a webhook may call: those of the public internet, unless the user says otherwise.

Otherwise a webhook address would be a way to make the agent call services that trust its network.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

Resolve = Callable[[str, int], list[str]]
_NAT64 = IPv6Network("64:ff9b::/96")


def resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a host as text, most preferred first. Raises OSError where there is none."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


def is_public(address: str) -> bool:
    """Return whether an address is on the public internet, also where IPv6 carries an IPv4 one."""
    ip = _unwrapped(ip_address(address.partition("%")[0]))
    return ip.is_global and not ip.is_multicast


def _unwrapped(ip: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    if isinstance(ip, IPv4Address):
        return ip
    if ip in _NAT64:
        return IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour or ip
