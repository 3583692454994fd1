"""`resweep.event/1` as JSON lines: configs, events and feedback, with bad lines told and passed over."""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import msgspec

from resweep.domain.batch import ConfigRecord
from resweep.domain.errors import ConfigError, InputError
from resweep.domain.event import (
    FEEDBACK_KINDS,
    UNKNOWN,
    ErrorInfo,
    Feedback,
    FeedbackKind,
    Hit,
    RetrievalEvent,
    ScoreKind,
    ScoreState,
    parse_event_id,
)
from resweep.domain.faults import classify
from resweep.domain.fingerprint import fingerprint
from resweep.domain.invalidation import InvalidationRules
from resweep.domain.sample import query_key
from resweep.domain.values import SCORE_LARGEST, number

SALT = b"resweep.event/1"
LINE_MAX = 16 * 1024 * 1024  # bytes; a longer line is no event
KINDS = ("similarity", "distance", "rerank")


class BadLine(NamedTuple):
    """A line that could not be used: its number from 1, and why."""

    line: int
    reason: str


class EventLine(NamedTuple):
    """An event, and the vector sizes (got, expected) where its error was a mismatch of them."""

    event: RetrievalEvent
    sizes: tuple[int, int] | None = None


Item = ConfigRecord | EventLine | Feedback | BadLine


class _RawHit(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    score: float | None = None
    kind: str | None = None
    retriever_score: float | None = None
    source: str | None = None
    tokens: int | None = None
    text_hash: str | None = None
    text: str | None = None


class _RawEvent(msgspec.Struct, forbid_unknown_fields=True):
    type: str
    id: str
    ts: float
    pipeline: str
    query: str | None = None
    asked: int | None = None
    returned: int | None = None
    candidates: int | None = None
    reranked: int | None = None
    hits: list[_RawHit] | None = None
    filters: dict[str, Any] | None = None
    latency_s: float | None = None
    stages: dict[str, float] | None = None
    partial: bool = False
    error: None = None
    stop: str | None = None
    trace_id: str | None = None
    config_hash: str | None = None
    user_key: str | None = None


_fast = msgspec.json.Decoder(_RawEvent)
_EVENT_FIELDS = frozenset(_RawEvent.__struct_fields__)
_HIT_FIELDS = frozenset(_RawHit.__struct_fields__)


class LineReader:
    """Turns lines into items. Remembers, per pipeline, the config line in force.

    `unknown_fields` counts fields that were ignored, by name. `salt` makes the keys by which a query is
    known again.
    """

    def __init__(self, rules: InvalidationRules, salt: bytes = SALT) -> None:
        self.rules = rules
        self.salt = salt
        self.unknown_fields: dict[str, int] = {}
        self._current: dict[str, str] = {}

    def read(self, lines: Iterable[bytes]) -> Iterator[Item]:
        """Yield an item for each line that is not blank; a bad one as `BadLine`."""
        for place, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                yield self.item(line)
            except InputError as error:
                yield BadLine(place, str(error))

    def item(self, line: bytes) -> Item:
        """Return what one line says. Raises InputError for a line that says nothing usable."""
        try:
            raw = _fast.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return self._slow(line)
        if raw.type != "event":
            return self._slow(line)
        return EventLine(self._quick(raw))

    def _config_of(self, pipeline: str, stated: str | None, event_id: str) -> str:
        if stated:
            return stated[:12]
        known = self._current.get(pipeline)
        if known is not None:
            return known
        parts = parse_event_id(event_id)
        return UNKNOWN if parts is None else parts.config

    def _quick(self, raw: _RawEvent) -> RetrievalEvent:
        hits = () if raw.hits is None else tuple(map(_quick_hit, raw.hits))
        _check(raw.id, raw.pipeline, raw.ts)
        return RetrievalEvent(
            raw.id,
            raw.ts,
            raw.pipeline,
            self._config_of(raw.pipeline, raw.config_hash, raw.id),
            _depth(raw.asked, "asked"),
            _returned(raw.returned, raw.asked, len(hits)),
            hits,
            raw.query,
            None if raw.query is None else query_key(raw.query, raw.filters, self.salt),
            raw.candidates,
            raw.reranked,
            raw.filters,
            _finite(raw.latency_s),
            raw.stages or {},
            raw.partial,
            None,
            raw.hits is None,
            raw.stop,
            raw.trace_id,
            user_key=raw.user_key or None,
        )

    def _slow(self, line: bytes) -> Item:
        raw = _object(line)
        kind = raw.get("type")
        if kind == "config":
            return self._config(raw)
        if kind == "feedback":
            return feedback_of(raw)
        if kind != "event":
            raise InputError(f'expected "type" to be "event", "config" or "feedback"; got {kind!r:.40}')
        return self._event(raw)

    def _config(self, raw: Mapping[str, Any]) -> ConfigRecord:
        pipeline, config = raw.get("pipeline"), raw.get("config")
        if not isinstance(pipeline, str) or not pipeline or not isinstance(config, Mapping):
            raise InputError('expected a config line with "pipeline", a name, and "config", an object')
        try:
            known = fingerprint(config, rules=self.rules)
        except ConfigError as error:
            raise InputError(f"the config has no identity: {error}") from None
        self._current[pipeline] = known.config_hash
        return ConfigRecord(
            pipeline=pipeline,
            config=known.config_hash,
            basis=known.basis_hash,
            document=known.document,
            digest=known.document_digest,
            omitted=known.omitted,
        )

    def _event(self, raw: Mapping[str, Any]) -> EventLine:
        self._count_unknown(raw, _EVENT_FIELDS)
        event_id, pipeline = _text(raw.get("id")), raw.get("pipeline")
        if event_id is None or not isinstance(pipeline, str):
            raise InputError('expected an event with "id" and "pipeline", both text')
        ts = timestamp(raw.get("ts"))
        _check(event_id, pipeline, ts)
        hits = tuple(self._hits(raw.get("hits")))
        error, sizes = _error(raw.get("error"))
        asked = _depth(raw.get("asked"), "asked")
        query = _text(raw.get("query"))
        filters = raw["filters"] if isinstance(raw.get("filters"), dict) else None
        event = RetrievalEvent(
            id=event_id,
            ts=ts,
            pipeline=pipeline,
            config=self._config_of(pipeline, _text(raw.get("config_hash")), event_id),
            asked=asked,
            returned=_returned(_depth(raw.get("returned"), "returned"), asked, len(hits)),
            hits=hits,
            query=query,
            query_key=None if query is None else query_key(query, filters, self.salt),
            candidates=_depth(raw.get("candidates"), "candidates"),
            reranked=_depth(raw.get("reranked"), "reranked"),
            filters=filters,
            latency_s=_finite(raw.get("latency_s")),
            stages=_stages(raw.get("stages")),
            partial=bool(raw.get("partial")),
            error=error,
            returned_none=raw.get("hits") is None,
            stop=_text(raw.get("stop")),
            trace_id=_text(raw.get("trace_id")),
            user_key=_text(raw.get("user_key")) or None,
        )
        return EventLine(event, sizes)

    def _hits(self, raw: object) -> Iterator[Hit]:
        if raw is None:
            return
        if not isinstance(raw, list):
            raise InputError(f'expected "hits" to be a list; got {type(raw).__name__}')
        for place, hit in enumerate(raw):
            if not isinstance(hit, dict) or (id_ := _text(hit.get("id"))) is None:
                raise InputError(f'expected hit {place} to be an object with an "id"')
            self._count_unknown(hit, _HIT_FIELDS)
            score, state = number(hit.get("score"))
            yield Hit(
                id_,
                score,
                _kind(hit.get("kind")),
                number(hit.get("retriever_score"))[0],
                _text(hit.get("source")) or None,
                _depth(hit.get("tokens"), "tokens"),
                _text(hit.get("text_hash")),
                state,
                _text(hit.get("text")),
            )

    def _count_unknown(self, raw: Mapping[str, Any], known: frozenset[str]) -> None:
        for name in raw.keys() - known:
            self.unknown_fields[name] = self.unknown_fields.get(name, 0) + 1


def _quick_hit(raw: _RawHit) -> Hit:
    score, state = raw.score, "ok"
    if score is None or not -SCORE_LARGEST <= score <= SCORE_LARGEST:
        score, state = number(score)
    kind = raw.kind if raw.kind is None else _kind(raw.kind)
    return Hit(
        raw.id,
        score,
        kind,
        raw.retriever_score,
        raw.source or None,
        raw.tokens,
        raw.text_hash,
        cast("ScoreState", state),
        raw.text,
    )


def timestamp(value: object) -> float:
    """Return unix seconds from unix seconds or ISO 8601 (UTC where no zone is given)."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        try:
            when = datetime.fromisoformat(value)
        except ValueError:
            pass
        else:
            return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    raise InputError(f'expected "ts" in unix seconds or ISO 8601; got {value!r:.40}')


def feedback_of(raw: Mapping[str, Any]) -> Feedback:
    """Return the feedback in an object. Raises InputError where it is none."""
    event_id, kind = _text(raw.get("event_id")), raw.get("kind")
    if event_id is None or kind not in FEEDBACK_KINDS:
        raise InputError(
            f'expected feedback with "event_id" and "kind", one of {", ".join(FEEDBACK_KINDS)}; '
            f"got kind {kind!r:.40}"
        )
    rater, ts = _text(raw.get("rater")), timestamp(raw.get("ts"))
    id_ = _text(raw.get("id")) or f"{event_id}/{kind}/{rater or ''}"
    return Feedback(id_, event_id, cast("FeedbackKind", kind), rater, ts)


def open_lines(path: Path) -> IO[bytes]:
    """Open a `.jsonl` or `.jsonl.gz` file (told by its first bytes). Raises InputError with what to do."""
    try:
        with path.open("rb") as probe:
            zipped = probe.read(2) == b"\x1f\x8b"
        return cast("IO[bytes]", gzip.open(path, "rb")) if zipped else path.open("rb")
    except OSError as error:
        raise InputError(f"expected a file of {path}; {error.strerror or error}: check the path") from None


def lines_of(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file; a damaged gzip ends in InputError after what could be read."""
    with open_lines(path) as stream:
        try:
            while line := stream.readline(LINE_MAX):
                yield line
        except (EOFError, zlib.error, OSError) as error:
            raise InputError(f"{path}: the file breaks off ({error}); what came before it was read") from None


def _object(line: bytes) -> dict[str, Any]:
    try:
        raw = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"expected a JSON object on one line; {error}") from None
    if not isinstance(raw, dict):
        raise InputError(f"expected a JSON object; got {type(raw).__name__}")
    return raw


def _check(event_id: str, pipeline: str, ts: float) -> None:
    if not event_id or not pipeline:
        raise InputError('expected an event with "id" and "pipeline", neither empty')
    if not (math.isfinite(ts) and 0 <= ts < 1e11):
        raise InputError(f'expected "ts" in unix seconds; got {ts!r}')


def _text(value: object) -> str | None:
    if value is None or isinstance(value, dict | list):
        return None
    return value if isinstance(value, str) else str(value)


def _kind(value: object) -> ScoreKind | None:
    return cast("ScoreKind", value) if value in KINDS else None


def _depth(value: object, name: str) -> int | None:
    if value is None:
        return None
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or value != value
        or not 0 <= value < 1e9
    ):
        raise InputError(f'expected "{name}" to be a whole number from 0; got {value!r:.40}')
    return int(value)


def _returned(stated: int | None, asked: int | None, hits: int) -> int:
    if stated is not None:
        return _depth(stated, "returned") or 0
    return hits if asked is None else min(asked, hits)


def _finite(value: object) -> float | None:
    score, _ = number(value)
    return score if score is not None and score >= 0 else None


def _stages(value: object) -> dict[str, float]:
    if not isinstance(value, dict):
        return {}
    seconds = {str(name): _finite(v) for name, v in value.items()}
    return {name: v for name, v in seconds.items() if v is not None}


def _error(value: object) -> tuple[ErrorInfo | None, tuple[int, int] | None]:
    if not value:
        return None, None
    raw: Mapping[str, Any] = value if isinstance(value, dict) else {"class": "Error", "message": str(value)}
    message = _text(raw.get("message"))
    fault = classify(_text(raw.get("class")) or "Error", message)
    sizes = None if fault.got is None or fault.expected is None else (fault.got, fault.expected)
    return ErrorInfo(fault.name, message), sizes
