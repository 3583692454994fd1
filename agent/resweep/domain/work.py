"""Work that needs the user's retriever: what a recorder offers, what the agent asks, what comes back.

Canaries and probes run where the retriever lives. A recorder offers what it can do; the agent leases pieces
of work to it, each to one recorder at a time; the recorder answers. All of it is JSON, over HTTP or as files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from resweep.domain.errors import InputError
from resweep.domain.event import Hit

WorkKind = Literal["embed", "retrieve", "probe"]
WORK_KINDS: tuple[WorkKind, ...] = ("embed", "retrieve", "probe")
PROBE_DEPTH = 40
OFFERS_MAX = 64  # watched retrievers of one recorder
DEPTH_FIXED = "fixed"


class Can(msgspec.Struct, frozen=True, kw_only=True):
    """What one watched retriever can be asked to do. `canaries`: its owner wants them.

    `depth` is "fixed" where the retriever cannot be asked for more passages than it returns by itself.
    `resting` says that it failed lately and takes no work until it is left alone for a while.
    """

    pipeline: str
    config: str
    basis: str
    kinds: tuple[WorkKind, ...] = ()
    canaries: bool = False
    depth: Literal["free", "fixed"] = "free"
    resting: bool = False
    trouble: str = ""


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """What a recorder can do now. `writer` is the id under which it hands over its batches."""

    writer: str
    can: tuple[Can, ...] = ()


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """One text to embed, or one question to retrieve for with the arguments it needs beside it."""

    id: str
    text: str
    kwargs: Mapping[str, object] = {}


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of work. `k` is the depth to retrieve at, None for the retriever's own.

    A probe names the event whose call is made again; only the recorder that made it holds its arguments.
    """

    id: str
    kind: WorkKind
    pipeline: str
    config: str
    basis: str
    asks: tuple[Ask, ...] = ()
    k: int | None = None
    event_id: str | None = None


class Retrieved(msgspec.Struct, frozen=True, kw_only=True):
    """What one question brought: hits in rank order, or the class of the error."""

    id: str
    hits: tuple[Hit, ...] = ()
    error: str | None = None


class Embedded(msgspec.Struct, frozen=True, kw_only=True):
    """What one text became: a vector, or the class of the error."""

    id: str
    vector: tuple[float, ...] = ()
    error: str | None = None


class WorkAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one piece of work. `error` where none of it could be done, e.g. "gone" for a probe whose
    call is no longer held."""

    id: str
    writer: str
    vectors: tuple[Embedded, ...] = ()
    retrieved: tuple[Retrieved, ...] = ()
    error: str | None = None


class Leased(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent asks of one recorder.

    It asks again after `again_s` seconds, and pauses `pause_s` between two calls of a retriever.
    """

    work: tuple[Work, ...] = ()
    again_s: float = 10.0
    pause_s: float = 0.2


_encoder = msgspec.json.Encoder()
_offers = msgspec.json.Decoder(Offer)
_answers = msgspec.json.Decoder(WorkAnswer)
_leases = msgspec.json.Decoder(Leased)


def encode(value: Offer | WorkAnswer | Leased) -> bytes:
    """Return an offer, a lease or an answer as JSON; what is no number is null."""
    return _encoder.encode(value)


def decode_offer(body: bytes | str) -> Offer:
    """Return an offer. Raises InputError for a body that is none."""
    try:
        offer = _offers.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"expected an offer of work with `writer` and `can`; {error}") from None
    if len(offer.can) > OFFERS_MAX or not 0 < len(offer.writer) <= 64:
        raise InputError(f"expected a writer id of 1 to 64 characters and at most {OFFERS_MAX} retrievers")
    return offer


def decode_answer(body: bytes) -> WorkAnswer:
    """Return an answer. Raises InputError for a body that is none."""
    try:
        return _answers.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"expected an answer to leased work; {error}") from None


def decode_leased(body: bytes) -> Leased:
    """Return what an agent asks. Raises InputError for a body that is none."""
    try:
        return _leases.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"expected leased work; {error}") from None
