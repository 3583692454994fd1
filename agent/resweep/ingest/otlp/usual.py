"""Spans that look like one before: the same names in the same order, as one instrumentation writes them.

Where its names are known, a span's fields and passages are read at fixed places of its undecoded attributes,
without looking a single name up. A plan is made of a span that lists documents the usual way: indices from
0 without gaps, each with an id, a score and the parts of the first. Any other is read with care, name by
name (`hits.from_attributes`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from resweep.domain.event import Hit
from resweep.domain.values import ID_LONGEST, SCORE_LARGEST
from resweep.ingest.otlp.hits import METADATA_REMEMBERED, Listed, facts_of
from resweep.ingest.otlp.names import CONTENT, FIELDS, LISTS, RETRIEVED
from resweep.ingest.otlp.wire import AT, DOUBLE, KEY, VALUE, double, value, value_at

PLANS_MAX = 256
NO_FACTS = -1
_FIELDS = {name.encode(): field for name, field in FIELDS.items() if field not in CONTENT}
_PREFIXES = tuple(prefix.encode() for prefix in LISTS)
_READY = tuple(tuple(name.encode() for name in names) for names in RETRIEVED)
_new = tuple.__new__  # past the names of a NamedTuple's fields: this is done for every passage of every span

Place = tuple[int, int, int, int, int, int]
Passage = tuple[str, str | None, int | None]  # id, source, tokens


class Plan(NamedTuple):
    """How the attributes of a span begin, and where its fields and passages stand.

    A passage is id, score and metadata, each an attribute's number and where its value begins; number
    `NO_FACTS` for no metadata.
    """

    begins: tuple[bytes, ...]
    fields: tuple[tuple[str, int, int], ...]
    passages: tuple[Place, ...]


class Usual:
    """Reads spans by plans, made as they are needed. Threads may share one."""

    def __init__(self) -> None:
        self._plans: dict[tuple[int, int, int], Plan] = {}

    def read(self, raws: Sequence[bytes]) -> tuple[dict[str, object], Listed] | None:
        """Return fields and documents of undecoded attributes; None for those of no plan."""
        if not raws or len(raws[0]) < AT or len(raws[-1]) < AT:
            return None
        key = (len(raws), raws[0][1], raws[-1][1])
        plan = self._plans.get(key)
        if plan is None or not all(map(bytes.startswith, raws, plan.begins)):
            plan = plan_of(raws)
            if plan is None:
                return None
            if len(self._plans) >= PLANS_MAX:
                self._plans.clear()
            self._plans[key] = plan
        listed = _passages(raws, plan)
        return None if listed is None else (_fields(raws, plan), listed)


def plan_of(raws: Sequence[bytes]) -> Plan | None:
    """Return the plan of a span's attributes; None where they are not written in the usual way."""
    begins = [raw[: 2 + raw[1]] for raw in raws if len(raw) > AT]
    if len(begins) < len(raws):
        return None
    whole = [raw[: len(begin) + 1] for raw, begin in zip(raws, begins, strict=True)]
    names = {begin[2:]: number for number, begin in enumerate(begins)}
    plain = all(one[0] == KEY and one[1] < 0x80 and one[-1] == VALUE for one in whole)
    if not plain or len(names) < len(raws):
        return None
    passages = _listed(names)
    if passages is None:
        return None
    fields = tuple((_FIELDS[name], at, len(name) + AT) for name, at in names.items() if name in _FIELDS)
    return Plan(tuple(whole), fields, passages)


def _listed(names: Mapping[bytes, int]) -> tuple[Place, ...] | None:
    """Return where passages stand; None for names that list something in another way."""
    parts = [name in names for name in _READY[0]]
    count = sum(name.startswith(_PREFIXES) for name in names)
    if not count:
        return ()
    if not (parts[0] and parts[1]) or count % sum(parts) or count // sum(parts) > len(_READY):
        return None
    some = _READY[: count // sum(parts)]
    if any([name in names for name in ready] != parts for ready in some):
        return None
    return tuple(_place(names, *ready[:3]) for ready in some)


def _place(names: Mapping[bytes, int], id_: bytes, score: bytes, facts: bytes) -> Place:
    return (
        names[id_],
        len(id_) + AT,
        names[score],
        len(score) + AT,
        names.get(facts, NO_FACTS),
        len(facts) + AT,
    )


def _fields(raws: Sequence[bytes], plan: Plan) -> dict[str, object]:
    return {field: value(_value(raws[number], at)) for field, number, at in plan.fields}


def _value(raw: bytes, at: int) -> bytes:
    return raw[at:] if raw[at - 1] < 0x80 else value_at(raw, at)


def _passages(raws: Sequence[bytes], plan: Plan) -> Listed | None:
    """Return the hits of a span by its plan; None where an id or a score is none."""
    listed = Listed()
    append, known = listed.hits.append, _known
    for id_n, id_at, score_n, score_at, facts_n, facts_at in plan.passages:
        raw_id, raw_score = raws[id_n], raws[score_n]
        if len(raw_score) != score_at + 9 or raw_score[score_at] != DOUBLE:
            return None
        (score,) = double(raw_score, score_at + 1)
        if not -SCORE_LARGEST <= score <= SCORE_LARGEST:
            return None
        id_ = raw_id[id_at:] if raw_id[id_at - 1] < 0x80 else value_at(raw_id, id_at)
        if facts_n < 0:
            found = known(id_, None)
        else:
            raw_facts = raws[facts_n]
            if raw_facts[facts_at - 1] < 0x80:
                found = known(id_, raw_facts[facts_at:])
            else:
                found = _long(id_, value_at(raw_facts, facts_at))
        if found is None:
            return None
        name, source, tokens = found
        append(_new(Hit, (name, score, None, None, source, tokens, None, "ok", None, None)))
    listed.first = 0 if listed.hits else None
    return listed


def _long(raw_id: bytes, metadata: bytes) -> Passage | None:
    return (_known if len(metadata) <= METADATA_REMEMBERED else _known.__wrapped__)(raw_id, metadata)


@lru_cache(maxsize=8192)
def _known(raw_id: bytes, metadata: bytes | None) -> Passage | None:
    """Return id, source and tokens of a passage, remembered since passages repeat; None without an id."""
    id_ = value(raw_id)
    if type(id_) is not str or not 0 < len(id_) <= ID_LONGEST:
        return None
    return (id_, *facts_of(metadata))
