"""Batches straight to an agent: `POST /v1/batches`, gzip, bearer token, on the folding thread alone."""

from __future__ import annotations

import gzip
import urllib.error
import urllib.request
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from resweep.domain.batch import Batch, encode_batch
from resweep.domain.errors import InputError

TIMEOUT_S = 5.0
_NEVER_ACCEPTED = frozenset((400, 413, 415, 422))


class HttpSink:
    """Posts batches to an agent's `POST /v1/batches`; used on the folding thread alone.

    `timeout_s` bounds each connection and answer. A redirect is not followed: the token is for this host.
    """

    def __init__(self, url: str, token: str | None = None, timeout_s: float = TIMEOUT_S) -> None:
        self.url = url.rstrip("/")
        if not urlsplit(self.url).path:
            self.url += "/v1/batches"
        self.timeout_s = timeout_s
        self.token = token
        self._opener = urllib.request.build_opener(NoRedirect)

    def write(self, batch: Batch) -> None:
        """Hand one batch over.

        Raises OSError where it cannot be taken now, InputError where it never will.
        """
        headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        body = gzip.compress(encode_batch(batch), 1)
        request = urllib.request.Request(self.url, body, headers, method="POST")  # noqa: S310 - http and https alone: see sinks.choose
        try:
            with self._opener.open(request, timeout=self.timeout_s) as response:
                response.read(65536)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code in _NEVER_ACCEPTED:
                raise InputError(f"the agent at {self.url} refused a batch with {error.code}") from None
            raise OSError(f"the agent at {self.url} answered {error.code}") from None
        except HTTPException as error:
            raise OSError(f"the agent at {self.url} broke off: {type(error).__name__}") from None

    def close(self) -> None:
        """Nothing is kept open between batches."""


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: a token is for the host it was given for."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Return no request to follow with."""
        return
