"""The demo's documents and judged questions, as they ship."""

from __future__ import annotations

import gzip
import json
from importlib.resources import files
from typing import Any, NamedTuple


class Document(NamedTuple):
    """One passage of documentation; `source` is the page it stands on."""

    id: str
    text: str
    source: str


class Question(NamedTuple):
    """A question somebody asked, and the ids of the documents that answer it."""

    id: str
    text: str
    relevant: tuple[str, ...]


def documents() -> list[Document]:
    """Return the 248 documents."""
    return [Document(row["id"], row["text"], row["source"]) for row in _rows("corpus.jsonl.gz")]


def questions() -> list[Question]:
    """Return the 86 judged questions."""
    return [Question(row["id"], row["text"], tuple(row["relevant"])) for row in _rows("questions.jsonl.gz")]


def _rows(name: str) -> list[dict[str, Any]]:
    packed = (files("resweep.serve.demo") / "data" / name).read_bytes()
    return [json.loads(line) for line in gzip.decompress(packed).splitlines()]
