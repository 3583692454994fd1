"""Values from outside made fit to keep; see `resweep.domain.values`."""

from resweep.domain.values import (
    ID_LONGEST,
    LABEL_LONGEST,
    SCORE_LARGEST,
    as_text,
    clean,
    identity,
    label,
    number,
    text_hash,
)

__all__ = [
    "ID_LONGEST",
    "LABEL_LONGEST",
    "SCORE_LARGEST",
    "as_text",
    "clean",
    "identity",
    "label",
    "number",
    "text_hash",
]
