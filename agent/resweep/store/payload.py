"""A window as a row: its main counts in columns, the rest packed.

Rows grow by merging, so what is open-ended in a window is bounded here. Of names beyond a bound those with
the smallest hashes stay and the rest share `other`: a name that stays in the union was among the smallest
of every part, so its count is whole whatever the order of merging.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

import msgspec
from sqlalchemy import RowMapping

from resweep.domain.window import COUNTS, Group, Histogram, Window

COLUMNS: tuple[str, ...] = (
    "retrievals",
    "ok",
    "empty_zero",
    "empty_none",
    "short",
    "errors",
    "partial",
    "low_confidence",
)
NAMES_MAX = 4096  # counts of a row, beside the fixed ones
GROUPS_MAX = 256  # filter keys of a row
OTHER = "other"
EXPOSED = ("error:", "feedback:", "sampled:", "dropped:")  # counts by value that become series
_LARGEST = 2**63 - 1


class _Rest(msgspec.Struct, omit_defaults=True):
    counts: dict[str, int] = {}
    histograms: dict[str, Histogram] = {}
    groups: dict[str, Group] = {}


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Rest)


def pack(window: Window) -> dict[str, Any]:
    """Return the columns of a window's row, without its key."""
    bound(window)
    row: dict[str, Any] = {name: min(window.get(name), _LARGEST) for name in COLUMNS}
    rest = {name: n for name, n in window.counts.items() if name not in row and n}
    row["payload"] = _encode(_Rest(rest, window.histograms, window.groups))
    return row


def unpack(row: RowMapping, pipeline: str, config: str, minute: int) -> Window:
    """Return the window of a row."""
    rest = _decoder.decode(row["payload"])
    counts = {name: row[name] for name in COLUMNS if row[name]} | rest.counts
    return Window(pipeline, config, minute, counts, rest.histograms, rest.groups)


def pack_total(total: Window) -> bytes:
    """Return what of a running total is exposed, packed."""
    kept = {name: n for name, n in total.counts.items() if name in _FIXED or name.startswith(EXPOSED)}
    return _encode(_Rest(kept, total.histograms))


def unpack_total(payload: bytes) -> Window:
    """Return a running total."""
    rest = _decoder.decode(payload)
    return Window("", "", 0, rest.counts, rest.histograms)


def bound(window: Window) -> None:
    """Fold what a window has too much of into `other`, in place."""
    if len(window.groups) > GROUPS_MAX:
        for key in _surplus(window.groups, GROUPS_MAX):
            window.groups.setdefault(OTHER, Group()).merge(window.groups.pop(key))
    loose = [name for name in window.counts if name not in _FIXED]
    if len(loose) > NAMES_MAX:
        for name in _surplus(loose, NAMES_MAX):
            window.add(f"{name.partition(':')[0]}:{OTHER}", window.counts.pop(name))


_FIXED = frozenset(COUNTS)


def _surplus(names: Iterable[str], most: int) -> list[str]:
    loose = [name for name in names if name.rpartition(":")[2] != OTHER]
    return sorted(loose, key=lambda name: (zlib.crc32(name.encode()), name))[most:]


def _encode(rest: _Rest) -> bytes:
    try:
        return _encoder.encode(rest)
    except OverflowError:
        return _encoder.encode(_clamped(rest))


def _clamped(rest: _Rest) -> _Rest:
    """Hold sums at the largest number a row can carry; scores in the millions reach it after years."""
    for histogram in rest.histograms.values():
        histogram.total = max(-_LARGEST, min(histogram.total, _LARGEST))
        histogram.counts = [min(n, _LARGEST) for n in histogram.counts]
    for group in rest.groups.values():
        for name in group.__struct_fields__:
            setattr(group, name, min(getattr(group, name), _LARGEST))
    return _Rest({k: min(n, _LARGEST) for k, n in rest.counts.items()}, rest.histograms, rest.groups)
