"""Answers on disk: by key, by age, and not for ever."""

from __future__ import annotations

from pathlib import Path

from resweep.sweep.cache import KEPT_S, Cache

NOW = 1_796_000_000.0


def test_an_answer_too_old_for_a_retriever_still_serves_what_follows_from_its_key(tmp_path: Path) -> None:
    """A retriever's index moves on; a model of one version and the same words do not."""
    Cache(tmp_path, NOW).put("k", b"v")
    later = Cache(tmp_path, NOW + 100, max_age_s=50)
    assert (later.get("k"), later.get("k", ever=True), later.known(["k"])) == (None, b"v", 0)


def test_what_nobody_put_in_for_long_is_removed(tmp_path: Path) -> None:
    """Questions and answers of users do not lie there for ever."""
    Cache(tmp_path, NOW).put("old", b"v")
    Cache(tmp_path, NOW + KEPT_S).put("new", b"v")
    last = Cache(tmp_path, NOW + KEPT_S + 1)
    assert (last.get("old", ever=True), last.get("new", ever=True)) == (None, b"v")
