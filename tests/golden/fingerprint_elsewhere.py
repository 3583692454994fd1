"""Fingerprints worked out in another process or by another Python, with the standard library alone.

Imported there, not run, since live objects are known by the name of their module. `main` prints one JSON
object: the digests of every golden config, of a config that only Python can hold and of one with a live
object in it, and one of normalised text over every script that a newer Python could know better.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import hashlib
import json
import pathlib
import sys
import uuid
from dataclasses import dataclass
from typing import Any

from resweep.domain.canonical import nfc
from resweep.domain.fingerprint import Fingerprint, fingerprint

VECTORS = pathlib.Path(__file__).parent / "fingerprint_vectors.json"


class Metric(enum.Enum):
    COSINE = "cosine"


@dataclass
class Chunker:
    tokens: int = 512
    overlap: float = 64.0
    separator: str | None = None


class SomeClass:
    """An embedder as people put it into a config."""

    def __init__(self, model: str, dim: int) -> None:
        self.model = model
        self.dim = dim


def python_config() -> dict[str, Any]:
    """Return a config with a set, tuples, and one of everything that is brought to plain data."""
    return {
        "k": 5,
        "chunk": (400, 60),
        "filters": {"lang": {"en", "de", "fr"}, "tier": frozenset({2, 10, 1}), "mixed": {"a", 1, None, 2.5}},
        "model": "m1",
        "chunker": Chunker(),
        "index": {"metric": Metric.COSINE, "path": pathlib.PurePosixPath("/data/idx"), Metric.COSINE: 1},
        "when": datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC),
        "day": datetime.date(2026, 1, 2),
        "wait": datetime.timedelta(seconds=90),
        "id": uuid.UUID(int=7),
        "weight": decimal.Decimal("0.1"),
        "text": "cafe\u0301",
    }


def live_config(dim: int) -> dict[str, Any]:
    """Return a config with a live object and a function in it."""
    return {"embedder": SomeClass(model="m1", dim=dim), "tokenizer": lambda s: s.split(), "k": 5}


def digests(one: Fingerprint) -> list[str]:
    """Return all that identifies a config."""
    return [one.config_digest, one.basis_digest, one.document_digest]


def normalised_text() -> str:
    """Return a digest of normalised text with every character outside CJK, Hangul and private use."""
    digest = hashlib.sha256()
    for code in (*range(0x3400), *range(0xA000, 0xAC00), *range(0xF900, 0x17000), *range(0x1B000, 0x20000)):
        sign = chr(code)
        digest.update(nfc(f"a\u0315{sign}\u0301{sign}\u0323{sign}").encode())
    return digest.hexdigest()


def everything() -> dict[str, Any]:
    """Return what must be the same everywhere."""
    vectors = json.loads(VECTORS.read_text(encoding="utf-8"))
    return {
        "vectors": [digests(fingerprint(vector["config"])) for vector in vectors],
        "python": digests(fingerprint(python_config())),
        "live": digests(fingerprint(live_config(384), strict=False)),
        "normalised_text": normalised_text(),
    }


def main() -> None:
    """Print it, with the version of this Python."""
    json.dump({"python_version": list(sys.version_info[:2]), **everything()}, sys.stdout)
