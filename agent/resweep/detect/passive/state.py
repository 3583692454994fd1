"""The engine's state as bytes and back: MessagePack, only classes named here, no pickle.

Every value becomes plain data with a tag; an object becomes its class's name and its attributes. What two
objects share (the vocabularies) is linked again after reading. Unknown names are refused.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import fields, is_dataclass
from enum import IntEnum
from typing import Any

import msgspec
import numpy as np

from resweep.detect.passive import evidence, features, levels, onset, outcome, pinned, twins, vocabulary
from resweep.detect.passive.book import Book
from resweep.detect.passive.changes import FlagChange
from resweep.detect.passive.compare import Outcome
from resweep.detect.passive.direction import Direction
from resweep.detect.passive.monitor import Monitor
from resweep.detect.passive.settings import PassiveSettings
from resweep.domain.errors import InputError
from resweep.domain.sample import BottomK, Record
from resweep.domain.verdict import Flag

SCHEMA = "resweep.passive/1"
_CLASSES: dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        evidence.Null, evidence.Period, evidence.Onset, evidence.Shares, evidence.Rise,
        features.Block, features.Memory, features.Groups,
        levels.Finding, levels.Reference, levels.Levels, onset.Rows, pinned.Pinned,
        outcome.Outcome, outcome.OutcomeAlarm, outcome.Track,
        twins.Twin, twins.Vote, twins.TwinAlarm, twins.Spread, twins.Twins,
        vocabulary.Seen, vocabulary.Vocabulary,
        Book, FlagChange, Direction, Monitor, PassiveSettings, BottomK, Record, Flag,
    )
}  # fmt: skip
_WORD = 1 << 63


def dump(monitors: dict[str, Monitor]) -> bytes:
    """Return the state of an engine's monitors as bytes."""
    return msgspec.msgpack.encode([SCHEMA, _pack(monitors)])


def load(data: bytes) -> dict[str, Monitor]:
    """Return the monitors that `dump` wrote; raise `InputError` for anything else."""
    try:
        schema, packed = msgspec.msgpack.decode(data)
    except (msgspec.DecodeError, ValueError, TypeError) as error:
        raise InputError(
            f"passive state: expected {SCHEMA}, got bytes that cannot be read: {error}"
        ) from error
    if schema != SCHEMA:
        raise InputError(f"passive state: expected {SCHEMA}, got {schema!r}; start without it to learn anew")
    monitors: dict[str, Monitor] = _unpack(packed)
    for monitor in monitors.values():
        monitor.parent = monitors.get(monitor.parent_config)
        vars(monitor).setdefault("pinned", pinned.Pinned())  # not in what earlier versions saved
        monitor.memory.passages, monitor.memory.sources = monitor.passages, monitor.sources
    return monitors


def _pack(value: Any) -> Any:
    if value is None or isinstance(value, bool | float | str | bytes):
        return value
    if isinstance(value, IntEnum):
        return ["e", int(value)]
    if isinstance(value, int):
        return value if -_WORD <= value < _WORD else ["i", str(value)]
    if isinstance(value, np.ndarray):
        return ["a", str(value.dtype), list(value.shape), value.tobytes()]
    if isinstance(value, np.generic):
        return value.item()
    if type(value).__name__ in _CLASSES:
        return ["o", type(value).__name__, {name: _pack(v) for name, v in _attributes(value).items()}]
    return _pack_many(value)


def _pack_many(value: Any) -> Any:
    if isinstance(value, Counter):
        return ["c", [[_pack(k), v] for k, v in value.items()]]
    if isinstance(value, dict):
        return ["d", [[_pack(k), _pack(v)] for k, v in value.items()]]
    if isinstance(value, deque):
        return ["q", value.maxlen, [_pack(v) for v in value]]
    if isinstance(value, tuple):
        return ["t", [_pack(v) for v in value]]
    if isinstance(value, list):
        return ["l", [_pack(v) for v in value]]
    raise TypeError(f"passive state: {type(value).__qualname__} has no place in it")


def _attributes(value: Any) -> dict[str, Any]:
    if isinstance(value, msgspec.Struct):
        return {name: getattr(value, name) for name in value.__struct_fields__}
    if isinstance(value, tuple):
        return dict(value._asdict())  # type: ignore[attr-defined]
    if is_dataclass(value):
        return {f.name: getattr(value, f.name) for f in fields(value)}
    return {
        name: v for name, v in vars(value).items() if not (isinstance(value, Monitor) and name == "parent")
    }


def _unpack(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    tag = value[0]
    if tag == "o":
        return _object(value[1], {name: _unpack(v) for name, v in value[2].items()})
    if tag == "a":
        return np.frombuffer(value[3], dtype=value[1]).reshape(value[2]).copy()
    if tag in ("d", "c"):
        pairs = {_unpack(k): _unpack(v) for k, v in value[1]}
        return Counter(pairs) if tag == "c" else pairs
    if tag == "q":
        return deque([_unpack(v) for v in value[2]], maxlen=value[1])
    if tag in ("t", "l"):
        many = [_unpack(v) for v in value[1]]
        return tuple(many) if tag == "t" else many
    return Outcome(value[1]) if tag == "e" else int(value[1])


def _object(name: str, attributes: dict[str, Any]) -> Any:
    cls = _CLASSES.get(name)
    if cls is None:
        raise InputError(f"passive state: expected a class of this version, got {name!r}; start without it")
    if issubclass(cls, msgspec.Struct | tuple) or is_dataclass(cls):
        return cls(**attributes)
    found = cls.__new__(cls)
    vars(found).update(attributes)
    return found
