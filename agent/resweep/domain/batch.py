"""What a recorder hands over: windows, sampled events and feedback, in numbered batches.

A batch is identified by (writer, seq); the agent applies each exactly once. `windows` batches carry counts
and are never given up before `samples` batches when space runs out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from resweep.domain.errors import InputError, NewerFormatError
from resweep.domain.event import Feedback, RetrievalEvent
from resweep.domain.sample import Record
from resweep.domain.window import Window

BATCH_SCHEMA = "resweep.batch/1"


class ConfigRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A pipeline's config as its process declared it, and what the live objects said.

    `document` is the canonical config without secrets; `omitted` and `opaque` list paths. `observed` holds
    introspected facts (`k`, `model`, `dimensions`, `collection`, `count`, `metric`, `framework`).
    `default_k` is set where k is only the framework's default and nobody chose it.
    """

    pipeline: str
    config: str
    basis: str
    document: Mapping[str, object]
    digest: str = ""
    omitted: tuple[str, ...] = ()
    opaque: tuple[str, ...] = ()
    complete: bool = True
    observed: Mapping[str, object] = {}
    default_k: int | None = None
    first_ts: float = 0.0


class Panel(msgspec.Struct, kw_only=True):
    """Answers of one (pipeline, config, minute) that belong to its hour's bottom-k sample of queries."""

    pipeline: str
    config: str
    minute: int
    records: list[Record] = msgspec.field(default_factory=list)


class Batch(msgspec.Struct, kw_only=True):
    """One delivery of one writer. `ts` is when it was closed, unix seconds."""

    schema: str = BATCH_SCHEMA
    writer: str
    seq: int
    ts: float
    kind: Literal["windows", "samples"] = "windows"
    configs: list[ConfigRecord] = msgspec.field(default_factory=list)
    windows: list[Window] = msgspec.field(default_factory=list)
    events: list[RetrievalEvent] = msgspec.field(default_factory=list)
    feedback: list[Feedback] = msgspec.field(default_factory=list)
    panels: list[Panel] = msgspec.field(default_factory=list)


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Batch)


def encode_batch(batch: Batch) -> bytes:
    """Return the batch as strict JSON."""
    return _encoder.encode(batch)


def decode_batch(body: bytes) -> Batch:
    """Return the batch in a body.

    Raises InputError for a body that is none, NewerFormatError for one of a later schema.
    """
    try:
        batch = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(
            f"expected a {BATCH_SCHEMA} object; got {len(body)} bytes that are none: {error}"
        ) from None
    if batch.schema != BATCH_SCHEMA:
        raise NewerFormatError(
            f"expected schema {BATCH_SCHEMA!r}; got {batch.schema!r}: update the agent before its recorders"
        )
    return batch
