"""Three things that happened to others: hashes that differ for nothing, addresses, and secrets in configs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from resweep.domain.fingerprint import fingerprint

AGENT = Path(__file__).resolve().parents[2] / "agent"

LIVE = """
from resweep.domain.fingerprint import fingerprint
import json
class SomeClass:
    def __init__(self, model, dim):
        self.model, self.dim = model, dim
config = {"embedder": SomeClass(model="m1", dim=%d), "tokenizer": lambda s: s.split(), "k": 5}
found = fingerprint(config, strict=False)
print(json.dumps([found.config_hash, found.document, found.opaque, found.complete]))
"""


def in_a_process(source: str) -> Any:
    """Return what a new process prints."""
    environ = {**os.environ, "PYTHONPATH": str(AGENT), "PYTHONHASHSEED": "random"}
    done = subprocess.run(
        [sys.executable, "-c", source], env=environ, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


A = {"k": 5, "chunk": (400, 60), "filters": {"lang": {"en", "de", "fr"}}, "model": "m1"}
B = {"model": "m1", "filters": {"lang": {"fr", "en", "de"}}, "chunk": [400, 60], "k": 5}


def test_equal_configs_have_equal_hashes() -> None:
    """Whatever the order of keys and sets, tuple or list."""
    assert fingerprint(A) == fingerprint(B)


def test_the_order_of_stages_counts() -> None:
    """Dense before rerank is not rerank before dense."""
    one, two = ({**A, "stages": stages} for stages in (["dense", "rerank"], ["rerank", "dense"]))
    assert fingerprint(one).config_hash != fingerprint(two).config_hash


@pytest.mark.parametrize("plain", [A, fingerprint(A).document])
def test_a_config_written_to_a_file_and_read_back_has_its_hash(plain: dict[str, Any]) -> None:
    """YAML keeps a set; JSON has the list that sorting it gives."""
    listed = {**plain, "chunk": list(plain["chunk"])}
    from_yaml = yaml.safe_load(yaml.safe_dump(listed))
    from_json = json.loads(json.dumps(plain, default=sorted))
    assert fingerprint(from_yaml) == fingerprint(from_json) == fingerprint(A)


def test_a_live_object_has_one_identity_in_every_process() -> None:
    """Another dimension is another identity; no address is stored; the lambda is listed as opaque."""
    first, second, other = (in_a_process(LIVE % dim) for dim in (384, 384, 768))
    assert first == second
    assert first[0] != other[0]
    _, document, opaque, complete = first
    assert document["embedder"] == {"opaque": "__main__.SomeClass", "model": "m1", "dim": 384}
    assert "tokenizer" in opaque
    assert not complete
    assert "0x" not in json.dumps(document)


FIRST: dict[str, Any] = {
    "api_key": "sk-test-AAAA1111",
    "index_url": "https://user:p4ss@db.example/idx",
    "headers": {"Authorization": "Bearer tok-123"},
    "model": "m1",
}
ROTATED: dict[str, Any] = {
    "api_key": "sk-test-BBBB2222",
    "index_url": "https://admin:w0rd@db.example/idx",
    "headers": {"Authorization": "Bearer tok-456"},
    "model": "m1",
}


def test_rotating_every_secret_changes_nothing() -> None:
    """Hash, document and what was left out are all the same."""
    assert fingerprint(FIRST) == fingerprint(ROTATED)
    assert fingerprint(FIRST).omitted == ("api_key", "headers.Authorization", "index_url")


def test_another_host_is_another_config() -> None:
    """The address stays in the identity without its user-info."""
    moved = {**FIRST, "index_url": "https://user:p4ss@db2.example/idx"}
    assert fingerprint(moved).config_hash != fingerprint(FIRST).config_hash


def test_no_part_of_a_secret_is_kept() -> None:
    """Neither in text nor as a hash of it, which could be guessed from it."""
    kept = repr(fingerprint(FIRST))
    for part in ("sk-test", "AAAA1111", "p4ss", "user", "tok-123", "Bearer"):
        assert part not in kept
