"""Passages into hits: identity, score, tokens. Runs on the folding thread, so texts may be looked at here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from resweep.domain.event import Hit
from resweep.domain.values import as_text, clean, identity, number, text_hash
from resweep.record.shape import Glance
from resweep.record.tokens import Tokens

REMEMBERED = 8192  # texts whose hash and tokens are remembered: about 3 MB
SOURCE_LONGEST = 256
OVERHEAD_BYTES = 1024  # what a waiting record costs beside its texts


class Facts(NamedTuple):
    """What is derived from a text once: its hash, its tokens, and whether those are estimated."""

    text_hash: str
    tokens: int
    estimated: bool


class Hits:
    """Makes hits of passages and remembers what it derived from each text.

    `held_bytes` is about what the folded answers kept alive while they waited: a text that several answers
    share counts once. `remembered` is what is known by the hash of a text, `seen` the texts weighed.
    """

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self.remembered: dict[int, Facts] = {}
        self.seen: set[int] = set()
        self._glance = Glance()
        self.held_bytes = 0

    def restart(self) -> int:
        """Return `held_bytes` and count from 0 again."""
        held, self.held_bytes = self.held_bytes, 0
        self.seen.clear()
        return held

    def of(self, passages: Sequence[object]) -> tuple[tuple[Hit, ...], bool]:
        """Return the hits of some passages, without their texts, and whether token counts are estimated."""
        self.held_bytes += OVERHEAD_BYTES
        estimated, glance = False, self._glance
        hits = []
        for passage in passages:
            id_, text, raw_score, kind, base, source, tokens = glance(passage)
            hash_, counted = None, None
            if text is not None or id_ is None:
                hash_, counted, guessed = self.derive(text)
                estimated = estimated or guessed
            if type(tokens) is int and tokens >= 0:
                counted = tokens
            score, state = number(raw_score)
            hits.append(
                Hit(
                    identity(id_) or hash_ or text_hash(""),
                    score,
                    kind if score is not None else None,
                    None if base is None else number(base)[0],
                    None if source is None else source_name(source),
                    counted,
                    hash_,
                    state,
                )
            )
        return tuple(hits), estimated

    def derive(self, text: object) -> Facts:
        """Return what follows from a text, worked out once."""
        if type(text) is not str:
            text = as_text(text)
        if id(text) not in self.seen:
            self.weigh(text, 1)
        key = hash(text)
        facts = self.remembered.get(key)
        if facts is None:
            facts = self.remembered[key] = Facts(text_hash(text), *self._tokens(text))
            if len(self.remembered) > REMEMBERED:
                self._forget()
        return facts

    def weigh(self, text: str, times: int) -> None:
        """Take note that a text, and others like it, were kept alive."""
        self.seen.add(id(text))
        self.held_bytes += len(text) * times

    def _forget(self) -> None:
        """Let the older half go."""
        for key in list(self.remembered)[: REMEMBERED // 2]:
            del self.remembered[key]


def source_name(value: object) -> str | None:
    """Return a source's name as it is kept, None where it has none."""
    name = value if type(value) is str else identity(value)
    if not name:
        return None
    return name if len(name) <= SOURCE_LONGEST and name.isascii() else clean(name, SOURCE_LONGEST)
