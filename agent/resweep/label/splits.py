"""Tune and holdout without leakage: near-equal questions are always on one side.

A cluster is a connected group of near-equal questions. Its side follows from its name, the least key of its
first members, so it depends on neither order, process nor Python version. What has a side keeps it. A later
question that is near to clusters of both sides belongs to neither: it is quarantined.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from resweep.domain.case import HOLDOUT_SHARE, Side, side_of
from resweep.label.nearby import Nearby


class Placed(NamedTuple):
    """Where a question belongs."""

    cluster: str
    side: Side


class Question(NamedTuple):
    """A question by key; `scope` is its filter values as text."""

    key: str
    query: str
    scope: str = ""


def place(
    new: Iterable[Question],
    held: Mapping[str, Placed],
    nearby: Nearby,
    holdout: float = HOLDOUT_SHARE,
) -> dict[str, Placed]:
    """Return cluster and side of new questions; `nearby` is over the held ones, and takes the new ones in."""
    questions = {question.key: question for question in new if question.key not in held}
    for question in questions.values():
        nearby.add(*question)
    groups = _groups(questions, nearby)
    placed: dict[str, Placed] = {}
    for members in groups:
        fresh = sorted(key for key in members if key in questions)
        old = [held[key] for key in sorted(members) if key in held]
        placed.update(dict.fromkeys(fresh, _joined(old, fresh, holdout)))
    return placed


def declared(question: Question, at: Placed, held: Mapping[str, Placed], nearby: Nearby) -> Placed:
    """Return where a question belongs that comes with a place: there, unless a near-equal one is opposite.

    Then it is quarantined, as a question that would join both sides is. `nearby` takes it in.
    """
    sides = {held[key].side for key in nearby.like(question.query, question.scope) if key in held}
    nearby.add(*question)
    return Placed(at.cluster, "quarantined") if len({*sides, at.side} - {"quarantined"}) > 1 else at


def _joined(old: Sequence[Placed], fresh: Sequence[str], holdout: float) -> Placed:
    sides = {one.side for one in old if one.side != "quarantined"}
    cluster = min((one.cluster for one in old), default=fresh[0])
    if len(sides) > 1:
        return Placed(cluster, "quarantined")
    return Placed(cluster, sides.pop() if sides else side_of(cluster, holdout))


def _groups(questions: Mapping[str, Question], nearby: Nearby) -> list[set[str]]:
    """Return the connected groups that new questions are in, held neighbours included."""
    parent: dict[str, str] = {}

    def root(key: str) -> str:
        while parent.setdefault(key, key) != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    links = {key: nearby.like(q.query, q.scope) for key, q in questions.items()}
    for key in sorted(links):
        root(key)
        for other in links[key]:
            if other in questions:  # a held neighbour joins nobody: it may have a side of its own
                parent[root(other)] = root(key)
    groups: dict[str, set[str]] = {}
    for key in questions:
        groups.setdefault(root(key), set()).update([key, *(o for o in links[key] if o not in questions)])
    return list(groups.values())


def leaks(sides: Mapping[str, Side], nearby: Nearby, queries: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return pairs of near-equal questions of which one tunes and the other confirms."""
    return [
        (key, other)
        for key, query in sorted(queries.items())
        for other in nearby.like(query)
        if key < other and {sides.get(key), sides.get(other)} == {"tune", "holdout"}
    ]
