"""Judgments after a re-chunk or a re-ingest: found again by their text, or put on the list for repair.

A judgment speaks of a text. Where a passage of a new list has the same text, whatever its id, the judgment
moves there. Where none has, but one holds most of the judged words in their order, it moves there too. The
rest is lost and waits for a person; nothing is dropped in silence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from resweep.domain.case import Anchor, Graded
from resweep.domain.event import Hit
from resweep.domain.values import text_hash

HOLDS = 0.8  # share of the judged pairs of words that a passage must hold


class Anchored(NamedTuple):
    """Where a judgment belongs now. `to` is the passage that has its text, None where none has."""

    judgment: Graded
    anchor: Anchor
    to: Hit | None = None
    overlap: float = 1.0


def anchored(judged: Iterable[Graded], old: Sequence[Hit], new: Sequence[Hit]) -> list[Anchored]:
    """Return where each judgment belongs in a new list; `old` is the list it was made on, for its texts."""
    texts = {hit.id: hit.text for hit in old if hit.text}
    by_hash: dict[str, Hit] = {}
    for hit in new:
        name = hit.text_hash or (text_hash(hit.text) if hit.text else None)
        if name:
            by_hash.setdefault(name, hit)
    by_id = {hit.id: hit for hit in reversed(new)}
    return [_place(one, texts, by_hash, by_id, new) for one in judged]


def _place(
    one: Graded,
    texts: Mapping[str, str | None],
    by_hash: Mapping[str, Hit],
    by_id: Mapping[str, Hit],
    new: Sequence[Hit],
) -> Anchored:
    text = texts.get(one.passage_id)
    name = one.text_hash or (text_hash(text) if text else None)
    if name is not None and name in by_hash:
        to = by_hash[name]
        return Anchored(one, "here" if to.id == one.passage_id else "moved", to)
    same = by_id.get(one.passage_id)
    if name is None and same is not None:
        return Anchored(one, "here", same)
    if text:
        best, overlap = _most(text, new)
        if best is not None and overlap >= HOLDS:
            return Anchored(one, "moved", best, overlap)
    if same is None and name is None:
        return Anchored(one, "here")  # not in this list, and nothing says that its text is gone
    # An id that came back with another text is another passage; one that did not come back may still exist.
    return Anchored(one, "lost" if same is not None else "here", None, 0.0)


def _most(text: str, new: Sequence[Hit]) -> tuple[Hit | None, float]:
    """Return the passage that holds most of the text's pairs of words, and that share."""
    wanted = _pairs(text)
    best, most = None, 0.0
    for hit in new:
        share = len(wanted & _pairs(hit.text or "")) / len(wanted) if wanted else 0.0
        if share > most:
            best, most = hit, share
    return best, most


def _pairs(text: str) -> frozenset[tuple[str, str]]:
    return frozenset(pairwise(text.casefold().split()))
