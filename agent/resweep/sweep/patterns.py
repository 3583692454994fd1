"""What it means when precision, recall and answers move together, or apart."""

from __future__ import annotations

from typing import Literal, NamedTuple

Move = Literal["up", "down", "flat", "unknown"]


class Moves(NamedTuple):
    """How each measure moved from one system or depth to another, beyond chance."""

    precision: Move = "unknown"
    recall: Move = "unknown"
    answers: Move = "unknown"
    faithfulness: Move = "unknown"
    cost: Move = "unknown"


class Pattern(NamedTuple):
    """A known pattern: its code, its reading, and the next experiment."""

    code: str
    reading: str
    next_experiment: str


_TABLE: tuple[tuple[Moves, Pattern], ...] = (
    (
        Moves(recall="up", faithfulness="down"),
        Pattern(
            "conflicting_context",
            "more evidence arrives, and answers follow it less: passages contradict one another or are stale",
            "better metadata, versions of documents, and rules in the prompt",
        ),
    ),
    (
        Moves(precision="down", recall="up", answers="up"),
        Pattern(
            "evidence_worth_noise",
            "the extra evidence is worth the noise that comes with it",
            "a reranker or compression, to keep the evidence and drop the noise",
        ),
    ),
    (
        Moves(precision="down", recall="up", answers="down"),
        Pattern(
            "noise_outweighs_evidence",
            "more evidence arrives, and the noise beside it costs more answers than it wins",
            "a reranker, so that the evidence arrives without the noise",
        ),
    ),
    (
        Moves(precision="down", recall="flat", answers="down"),
        Pattern(
            "pure_distraction",
            "the added passages are pure distraction",
            "a lower k, or a better cut",
        ),
    ),
    (
        Moves(precision="up", answers="flat"),
        Pattern(
            "beyond_the_answers",
            "retrieval got better in a way that the answers do not feel",
            "harder cases, with evidence in several places",
        ),
    ),
    (
        Moves(precision="flat", answers="flat", cost="up"),
        Pattern(
            "evidence_repeated",
            "the added passages repeat what is there, at a higher cost",
            "removal of near-duplicates, or an earlier stop",
        ),
    ),
)


def pattern_of(moves: Moves) -> Pattern | None:
    """Return the first known pattern that these moves show; None where they show none."""
    for wanted, pattern in _TABLE:
        pairs = zip(wanted, moves, strict=True)
        if all(want in ("unknown", got) for want, got in pairs):
            return pattern
    return None
