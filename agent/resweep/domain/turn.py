"""Whose turn a piece of shared work is."""

from __future__ import annotations

from typing import Literal, NamedTuple

Whose = Literal["mine", "there", "failed", "elsewhere"]


class Turn(NamedTuple):
    """`mine`: to be done by who asked. `there`: done, with its value. `failed`: for good, with its error.

    `elsewhere`: another has it in hand.
    """

    whose: Whose
    value: bytes | None = None
    error: str = ""


MINE = Turn("mine")
