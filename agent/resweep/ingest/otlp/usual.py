"""Documents listed in the usual way, read at fixed places: this is done for every passage of every span.

The usual way is that of the instrumentations themselves: indices from 0 without gaps, each with the same
parts, ids as text and scores as doubles. `hits.from_attributes` reads any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import lru_cache

from resweep.domain.event import Hit
from resweep.domain.values import ID_LONGEST, SCORE_LARGEST
from resweep.ingest.otlp.hits import METADATA_REMEMBERED, Listed, facts_of
from resweep.ingest.otlp.names import LISTS, RETRIEVED
from resweep.ingest.otlp.wire import AT, DOUBLE, double, value, value_at

# the names of each index as they stand on the wire, and where the value begins that follows each
NAMES: tuple[tuple[bytes, bytes, bytes, bytes], ...] = tuple(
    (a.encode(), b.encode(), c.encode(), d.encode()) for a, b, c, d in RETRIEVED
)
READY = frozenset(name for names in NAMES for name in names)
_PLACES = tuple((a, b, c, d, len(a) + AT, len(b) + AT, len(c) + AT) for a, b, c, d in NAMES)
_PREFIXES = tuple(prefix.encode() for prefix in LISTS)
Passage = tuple[str, str | None, int | None]  # id, source, tokens
_new = tuple.__new__  # past the names of a NamedTuple's fields


def listing(attributes: Mapping[bytes, bytes], others: Set[bytes]) -> Listed | None:
    """Return what attributes list; None where that is not in the usual way.

    `others` are the names that are not of `READY`.
    """
    first = [name in attributes for name in NAMES[0]]
    parts, ready = sum(first), len(attributes) - len(others)
    if any(name.startswith(_PREFIXES) for name in others):
        return None
    listed = Listed()
    if not ready:
        return listed
    if not (first[0] and first[1]) or ready % parts:
        return None
    facts, text = first[2:]
    return listed if _fill(listed, attributes, ready // parts, facts, text) else None


def _fill(listed: Listed, attributes: Mapping[bytes, bytes], n: int, facts: bool, text: bool) -> bool:
    """Add `n` hits, each with an id and a score, with metadata and text or without; False for others."""
    get, append, passage = attributes.get, listed.hits.append, _passage
    for id_name, score_name, facts_name, text_name, id_at, score_at, facts_at in _PLACES[:n]:
        raw_id, raw_score, raw_facts = get(id_name), get(score_name), get(facts_name)
        if raw_id is None or raw_score is None or (raw_facts is not None) != facts:
            return False
        if (
            (text_name in attributes) != text
            or len(raw_score) != score_at + 9
            or raw_score[score_at] != DOUBLE
        ):
            return False
        (score,) = double(raw_score, score_at + 1)
        if not -SCORE_LARGEST <= score <= SCORE_LARGEST:
            return False
        id_ = raw_id[id_at:] if raw_id[id_at - 1] < 0x80 else value_at(raw_id, id_at)
        if raw_facts is None:
            found = passage(id_, None)
        elif raw_facts[facts_at - 1] < 0x80:
            found = passage(id_, raw_facts[facts_at:])
        else:
            found = _long(id_, value_at(raw_facts, facts_at))
        if found is None:
            return False
        name, source, tokens = found
        append(_new(Hit, (name, score, None, None, source, tokens, None, "ok", None, None)))
    listed.first = 0
    return True


def _long(raw_id: bytes, metadata: bytes) -> Passage | None:
    known = len(metadata) <= METADATA_REMEMBERED
    return _passage(raw_id, metadata) if known else _passage.__wrapped__(raw_id, metadata)


@lru_cache(maxsize=8192)
def _passage(raw_id: bytes, metadata: bytes | None) -> Passage | None:
    """Return id, source and tokens of a passage, remembered since passages repeat; None without an id."""
    id_ = value(raw_id)
    if type(id_) is not str or not 0 < len(id_) <= ID_LONGEST:
        return None
    return (id_, *facts_of(metadata))
