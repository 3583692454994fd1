"""Reading a request's body, within bounds."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from http import HTTPStatus

from starlette.requests import Request

JSON_TYPES = ("application/json", "application/x-ndjson", "application/jsonl", "application/x-jsonlines")

_WINDOWS = {"identity": None, "gzip": 31, "deflate": 15}


class RequestError(Exception):
    """A request that is answered with an error. `expected` and `do` say how to mend it."""

    def __init__(self, status: int, error: str, *, expected: str = "", do: str = "") -> None:
        self.status = status
        self.error = error
        self.expected = expected
        self.do = do
        super().__init__(error)


async def read_body(request: Request, at_most: int, types: Sequence[str] = JSON_TYPES) -> bytes:
    """Return the body, unpacked; a request that names no type is taken to be of the first of `types`.

    Raises RequestError: 415 for another type or encoding, 413 beyond `at_most` bytes, 400 for a broken gzip.
    """
    _check_type(media_type(request, types[0]), types)
    window = _window(request)
    _check_length(request.headers.get("content-length"), at_most)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > at_most:
            raise _too_large(at_most)
    return bytes(body) if window is None else _unpack(bytes(body), at_most, window)


def media_type(request: Request, otherwise: str) -> str:
    """Return the type of a request's body, without parameters."""
    return request.headers.get("content-type", otherwise).partition(";")[0].strip().lower()


def _check_type(given: str, types: Sequence[str]) -> None:
    if given not in types:
        raise RequestError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"content type {given!r:.60} is not taken here",
            expected=" or ".join(types[:2]),
            do="set the Content-Type header",
        )


def _window(request: Request) -> int | None:
    """Return the window bits by which zlib unpacks the body; None for one that is not packed."""
    given = request.headers.get("content-encoding", "identity").strip().lower()
    if given not in _WINDOWS:
        raise RequestError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"content encoding {given!r:.40} is not taken here",
            expected="gzip, or none",
            do="send the body as it is, or packed with gzip",
        )
    return _WINDOWS[given]


def _check_length(given: str | None, at_most: int) -> None:
    if given is not None and given.isdecimal() and int(given) > at_most:
        raise _too_large(at_most)


def _too_large(at_most: int) -> RequestError:
    return RequestError(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        "the body is too large",
        expected=f"at most {at_most} bytes, unpacked",
        do="send less at once, or raise limits.body_bytes",
    )


def _unpack(body: bytes, at_most: int, window: int) -> bytes:
    """Unpack one stream; never makes more than `at_most` bytes and one."""
    unpacker = zlib.decompressobj(wbits=window)
    try:
        plain = unpacker.decompress(body, at_most + 1)
    except zlib.error as error:
        raise _no_gzip(str(error)) from None
    if len(plain) > at_most:
        raise _too_large(at_most)
    if not unpacker.eof or unpacker.unused_data:
        raise _no_gzip("it breaks off, or something follows it")
    return plain


def _no_gzip(why: str) -> RequestError:
    return RequestError(
        HTTPStatus.BAD_REQUEST,
        f"the body is no gzip or deflate stream: {why}",
        expected="one whole stream",
        do="pack the body again, or leave Content-Encoding out",
    )
