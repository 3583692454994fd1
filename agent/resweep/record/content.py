"""Content, where it is wanted: texts through the user's redaction, cut to what a record may hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from resweep.domain.event import Hit
from resweep.domain.values import as_text, clean
from resweep.record.asking import question
from resweep.record.reading import read

TEXT_LONGEST = 16_384  # characters of one passage that are kept
ALL_LONGEST = 160_000  # characters of all passages of an event together: below 1 MiB in any script


class Redaction:
    """The user's redaction hook. A text on which it fails is dropped and counted; the event stays."""

    def __init__(self, hook: Callable[[str], str] | None) -> None:
        self._hook = hook
        self.failed = 0

    def __call__(self, text: str, longest: int) -> str | None:
        """Return the text to keep, cut and marked where it is longer than `longest`; None for none."""
        if self._hook is not None:
            try:
                text = self._hook(text)
            except Exception:  # noqa: BLE001 - a user's function may raise anything
                text = None  # type: ignore[assignment]
            if not isinstance(text, str):
                self.failed += 1
                return None
        return cut(clean(text), longest)


def asked(query: object, hook: Callable[[str], str] | None) -> object:
    """Return the question by which a query is known: what the hook leaves of it, itself where that fails."""
    text = question(query) if hook is not None else None
    if hook is None or text is None:
        return query
    try:
        kept = hook(text)
    except Exception:  # noqa: BLE001 - a user's function may raise anything
        return query
    return kept if isinstance(kept, str) else query


def cut(text: str, longest: int) -> str:
    """Return a text of at most `longest` characters and a mark that says how long it was."""
    return text if len(text) <= longest else f"{text[:longest]}… [cut: {len(text)} characters]"


def with_texts(hits: tuple[Hit, ...], passages: Sequence[object], redact: Redaction) -> tuple[Hit, ...]:
    """Return hits with the texts of their passages."""
    longest = min(TEXT_LONGEST, ALL_LONGEST // max(1, len(hits)))
    return tuple(
        hit._replace(text=redact(as_text(text), longest)) if (text := read(passage).text) is not None else hit
        for hit, passage in zip(hits, passages, strict=False)
    )
