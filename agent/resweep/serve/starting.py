"""The first files of a user: `rag.yaml`, the declared config, and `resweep.toml`, the settings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from resweep.domain.batch import ConfigRecord
from resweep.domain.errors import UsageError
from resweep.serve.accepting import running_k

# Parts of a config that a live object rarely shows, each with the kind of value that belongs there.
HINTS: Mapping[str, str] = {
    "embedder": "{model: all-MiniLM-L6-v2, revision: …}",
    "chunker": "{tokens: 512, overlap: 64}",
    "index": "{type: hnsw, metric: cosine, collection: …}",
    "retriever": "{type: dense}",
    "reranker": "{model: …}",
    "generator": "{model: …, max_context: …}",
    "prompt": "{version: …}",
    "filters": "{lang: en}",
}
SETTINGS = """\
# Settings of resweep; every one is described in docs/configuration.md. The environment (RESWEEP_…) and flags
# are stronger than this file.

[agent]
listen = "127.0.0.1:9464"

[record]
capture = "none"  # "sampled" keeps the texts of sampled retrievals: what labelling needs
"""


def config_file(pipeline: str, record: ConfigRecord) -> str:
    """Return the text of a `rag.yaml` with what was seen, and comments on what is still to be said."""
    document = {name: value for name, value in record.document.items() if value not in ({}, [], None)}
    lines = [
        "# What this pipeline retrieves with: a tuned k holds for this and nothing else.",
        f"pipeline: {_scalar(pipeline)}",
        "config:",
        *_mapping(document, 1),
        *_missing(document, record),
    ]
    return "\n".join(lines) + "\n"


def _missing(document: Mapping[str, object], record: ConfigRecord) -> Iterator[str]:
    left = {name: hint for name, hint in HINTS.items() if name not in document}
    if left:
        yield "  # Not seen in the live object; declare what you use:"
        yield from (f"  # {name}: {hint}" for name, hint in left.items())
    if "context_k" not in document:
        k = running_k(record)
        yield f"  # context_k: {k or 8}  # passages that reach the prompt"
    if "candidate_k" not in document:
        yield "  # candidate_k: 50  # candidates asked of the index, where a reranker follows"


def _mapping(values: Mapping[str, object], depth: int) -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield f"{'  ' * depth}{_scalar(name)}:"
            yield from _mapping(value, depth + 1)
        else:
            yield f"{'  ' * depth}{_scalar(name)}: {_scalar(value)}"


def _scalar(value: object) -> str:
    """Return a value as YAML: plain where that cannot be misread, else as JSON, which YAML contains."""
    if isinstance(value, str) and value.isidentifier() and value.lower() not in _WORDS:
        return value
    return json.dumps(value, ensure_ascii=False)


_WORDS = ("y", "n", "yes", "no", "on", "off", "true", "false", "null", "none")


def write_new(path: Path, text: str, *, force: bool) -> Path:
    """Write a file that is not there yet, or with `force` in place of the one that is. Raises UsageError."""
    if path.exists() and not force:
        raise UsageError(f"{path} is there already: give --force to replace it, or another folder (--dir)")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    except OSError as error:
        raise UsageError(f"expected to write {path}; {error.strerror or error}") from None
    return path
