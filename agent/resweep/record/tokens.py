"""How many tokens a passage has, counted once per text and away from the request."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

LONGEST = 1_000_000  # characters given to a tokenizer; longer texts are estimated
_log = logging.getLogger("resweep")


def estimate(text: str) -> int:
    """Return a quarter of the characters, rounded up: about right for English, and marked as an estimate."""
    return (len(text) + 3) // 4


def counter(tokenizer: Any) -> Callable[[str], int] | None:
    """Return a function that counts with the user's tokenizer; None where there is none.

    Takes a callable that returns a number or the tokens, a tiktoken encoding, a tokenizer of transformers
    or of the tokenizers library.
    """
    if tokenizer is None:
        return None
    if hasattr(tokenizer, "encode_ordinary"):  # tiktoken; special tokens in a text are text
        return lambda text: len(tokenizer.encode_ordinary(text))
    if hasattr(tokenizer, "encode"):
        return lambda text: _length(tokenizer.encode(text))
    if callable(tokenizer):
        return lambda text: _length(tokenizer(text))
    _log.warning("expected tokens= to be a tokenizer or a function; got %s: estimating", type(tokenizer))
    return None


def _length(encoded: Any) -> int:
    if isinstance(encoded, int):
        return encoded
    ids = getattr(encoded, "ids", None)
    if ids is None and hasattr(encoded, "keys"):
        ids = encoded["input_ids"]
    return len(encoded if ids is None else ids)


class Tokens:
    """Counts tokens; falls back to the estimate for good once the user's tokenizer raises."""

    def __init__(self, tokenizer: Any = None) -> None:
        self._count = counter(tokenizer)

    def __call__(self, text: str) -> tuple[int, bool]:
        """Return the number of tokens and whether it is an estimate."""
        if self._count is None or len(text) > LONGEST:
            return estimate(text), True
        try:
            return int(self._count(text)), False
        except Exception as error:  # noqa: BLE001 - a user's function may raise anything
            _log.warning("the tokenizer given as tokens= raised %s; estimating from here on", type(error))
            self._count = None
            return estimate(text), True
