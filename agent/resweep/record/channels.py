"""How a recorder asks for work and answers: over HTTP, or through files beside the spool.

With files the recorder puts its offer into `work/offers`, finds what is asked of it in `work/todo` and puts
answers into `work/done`. Each file is of one writer and appears in one step, so nobody waits for a lock.
"""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, urlencode

from resweep.domain.errors import InputError
from resweep.domain.work import Leased, Offer, WorkAnswer, decode_leased, encode
from resweep.paths import FILE_MODE, FOLDER_MODE
from resweep.record.http import HttpSink, NoRedirect
from resweep.record.spool import SpoolSink

FIRST_S = 2.0  # between two looks into the folder, until an agent has said how often
ANSWER_MAX = 8 << 20  # bytes of what an agent may ask at once


class Channel(Protocol):
    """The way to an agent. Both methods raise OSError where it cannot be reached now."""

    def ask(self, offer: Offer) -> Leased:
        """Say what can be done; return what shall be done."""

    def answer(self, answer: WorkAnswer) -> None:
        """Hand over what a piece of work came to."""


def channel_of(sink: object) -> Channel | None:
    """Return the channel that goes with a sink; None where there is no agent behind it."""
    if isinstance(sink, HttpSink):
        return HttpChannel(sink.url.removesuffix("/v1/batches"), sink.token)
    if isinstance(sink, SpoolSink):
        return FolderChannel(sink.folder / "work")
    return None


class HttpChannel:
    """`GET /v1/work?offer=…` and `POST /v1/work/{id}` of an agent; a redirect is not followed."""

    def __init__(self, url: str, token: str | None, timeout_s: float = 10.0) -> None:
        self._url = url
        self._token = token
        self._timeout_s = timeout_s
        self._opener = urllib.request.build_opener(NoRedirect)

    def ask(self, offer: Offer) -> Leased:
        """Ask for work. Raises OSError where the agent has none to give now."""
        query = urlencode({"offer": encode(offer).decode()})
        try:
            return decode_leased(self._call(f"{self._url}/v1/work?{query}", None))
        except InputError as error:
            raise OSError(str(error)) from None

    def answer(self, answer: WorkAnswer) -> None:
        """Post an answer. Raises OSError where it is not taken."""
        self._call(f"{self._url}/v1/work/{quote(answer.id, safe='')}", encode(answer))

    def _call(self, url: str, body: bytes | None) -> bytes:
        headers = {"Content-Type": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        request = urllib.request.Request(url, body, headers)  # noqa: S310 - http and https alone: see sinks.choose
        try:
            with self._opener.open(request, timeout=self._timeout_s) as response:
                found: Any = response.read(ANSWER_MAX + 1)
        except urllib.error.HTTPError as error:
            error.close()
            raise OSError(f"the agent answered {error.code}") from None
        except HTTPException as error:
            raise OSError(f"the agent broke off: {type(error).__name__}") from None
        return bytes(found)


class FolderChannel:
    """Files in a folder that an agent on the same machine looks into."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._again_s = FIRST_S

    def ask(self, offer: Offer) -> Leased:
        """Put the offer down and take what was asked since."""
        todo = self._folder / "todo" / f"{offer.writer}.json"
        try:
            body = todo.read_bytes()
            todo.unlink()
        except FileNotFoundError:
            body = b""
        self._put("offers", offer.writer, encode(offer))
        if not body:
            return Leased(again_s=self._again_s)
        try:
            leased = decode_leased(body)
        except InputError as error:
            raise OSError(str(error)) from None
        self._again_s = leased.again_s
        return leased

    def answer(self, answer: WorkAnswer) -> None:
        """Put an answer down."""
        self._put("done", answer.id, encode(answer))

    def _put(self, kind: str, name: str, body: bytes) -> None:
        folder = self._folder / kind
        folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        part = folder / f".{name}.tmp"
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE)
        with os.fdopen(descriptor, "wb") as file:
            file.write(body)
        os.replace(part, folder / f"{name}.json")
