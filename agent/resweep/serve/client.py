"""Talking to an agent that runs, from the commands. The standard library suffices, and loads quickly."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from resweep.domain.errors import ResweepError, StoreError, UsageError

TIMEOUT_S = 10.0
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # the agent is near; no proxy


class UnreachableError(ResweepError):
    """No agent answers at the address."""


class Client:
    """One agent's API. Raises UnreachableError where nobody answers, UsageError for what it refuses."""

    def __init__(self, url: str, token: str | None) -> None:
        if urlsplit(url).scheme not in ("http", "https"):
            raise UsageError(f"--url: expected http://HOST:PORT; got {url!r}")
        self.url = url.rstrip("/")
        self._token = token

    def get(self, path: str) -> Any:
        """Return the JSON at a path."""
        return self._call(path, None)

    def post(self, path: str, value: object) -> Any:
        """Send JSON to a path and return its answer."""
        return self._call(path, json.dumps(value).encode())

    def _call(self, path: str, body: bytes | None) -> Any:
        request = urllib.request.Request(f"{self.url}{path}", data=body)  # noqa: S310  (scheme checked above)
        request.add_header("content-type", "application/json")
        if self._token:
            request.add_header("authorization", f"Bearer {self._token}")
        try:
            with _OPENER.open(request, timeout=TIMEOUT_S) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                raise _refused(error.code, error.read()) from None
        except (OSError, ValueError) as error:
            raise UnreachableError(
                f"expected an agent at {self.url}; {getattr(error, 'reason', error)}: start one with "
                "`resweep agent`, or name another with --url"
            ) from None


def _refused(status: int, body: bytes) -> ResweepError:
    try:
        told = json.loads(body)
        words = [told["error"]]
    except (ValueError, KeyError, TypeError):
        return UsageError(f"the agent answered with status {status}")
    if told.get("expected"):
        words.append(f"expected {told['expected']}")
    if told.get("do"):
        words.append(told["do"])
    message = "; ".join(words)
    return StoreError(message) if status >= 500 else UsageError(message)
