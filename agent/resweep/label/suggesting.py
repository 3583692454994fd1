"""What a model may be asked of a passage, and what it answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Opinion(NamedTuple):
    """A model's grade of a passage for a question, and its reason in a sentence."""

    grade: float
    reason: str = ""


Suggest = Callable[[str, str], Opinion]  # of question and passage


class Suggester(NamedTuple):
    """A model that suggests: its name, what asks it, and how many passages it may see in an hour."""

    name: str
    ask: Suggest
    per_hour: float
    depth: int
