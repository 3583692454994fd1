"""resweep.lock: what is written is read back, what people wrote stays, what cannot be read is named."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from resweep.domain.errors import LockFileError, NewerFormatError
from resweep.domain.verdict import TunedK
from resweep.store.lockfile import LockFile, find_lock, read_lock, write_lock

FULL = TunedK(
    pipeline="support-bot",
    basis="51aa03c7d2e4",
    epoch=2,
    context_k=15,
    candidate_k=50,
    parts={"embedder": {"model": "m1", "dim": 384}, "chunker": {"tokens": 512}, "prompt": "v3"},
    best_set=(15, 20, 40),
    objective="ndcg",
    constraints={"latency_p95_s": 0.5},
    labelled_set={"revision": "r9", "cases": 400},
    grid={"context_k": [1, 40], "cells": 80},
    slices={"refunds": {"n": 40, "recall": 0.5}},
    weak_cases=("c17", "c230"),
    report="01J8",
    judge={"model": "j1", "agreement": 0.9},
    observed={"vector_size": 384, "passages": 1200, "revisions": ["a", "b"]},
    tuned_at=1_796_000_000.0,
    tuned_by="jane",
    because='better "ndcg"\nsince May',
    valid_until=1_812_000_000.0,
    provisional=True,
)
SMALL = TunedK(pipeline="shop", basis="0b6e2f94d8a1", context_k=4)
HEAD = 'format = "resweep.lock/1"\n'
ENTRY = '[[tuned]]\npipeline = "shop"\nbasis = "0b6e2f94d8a1"\ncontext_k = 4\n'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give the place of a lock file that is not there yet."""
    return tmp_path / "resweep.lock"


def written(path: Path, *entries: TunedK) -> str:
    """Write entries and return the text of the file."""
    write_lock(path, LockFile(entries=entries))
    return path.read_text()


def test_every_field_is_read_back(path: Path) -> None:
    """Entries come in the order of pipeline, basis and epoch."""
    written(path, FULL, SMALL)
    assert read_lock(path).entries == (SMALL, FULL)


def test_it_reads_well(path: Path) -> None:
    """A header that says what it is, one table an entry, nothing empty."""
    text = written(path, SMALL)
    assert text.startswith("# The retrieval depth tuned for each pipeline")
    assert text.endswith(
        'format = "resweep.lock/1"\n\n[[tuned]]\npipeline = "shop"\nbasis = "0b6e2f94d8a1"\nepoch = 1\n'
        "context_k = 4\nprovisional = false\n"
    )


def test_times_are_dates_a_person_can_read(path: Path) -> None:
    """UTC, to the second."""
    assert "tuned_at = 2026-11-30T00:53:20Z\n" in written(path, replace(FULL, tuned_at=1_796_000_000.4))


def test_writing_the_same_changes_nothing(path: Path) -> None:
    """A diff shows what changed, and only that."""
    text = written(path, FULL, SMALL)
    assert written(path, SMALL, FULL) == text
    changed = written(path, SMALL, replace(FULL, context_k=20))
    differing = [(a, b) for a, b in zip(text.splitlines(), changed.splitlines(), strict=True) if a != b]
    assert differing == [("context_k = 15", "context_k = 20")]


def test_comments_and_unknown_keys_survive(path: Path) -> None:
    """Whatever people and later versions put beside an entry."""
    text = written(path, SMALL, FULL)
    text = text.replace("context_k = 15", "context_k = 15  # agreed with Ana")
    text = text.replace("[tuned.observed]", "# looked at in May\n[tuned.observed]")
    text = text.replace('pipeline = "shop"', 'pipeline = "shop"\nteam = "search"')
    path.write_text(text + '\n[team]\nowner = "ana"\n')
    after = written(path, SMALL, replace(FULL, context_k=16, because="x"))
    for kept in (
        "context_k = 16  # agreed with Ana",
        "# looked at in May\n",
        'team = "search"',
        'owner = "ana"',
    ):
        assert kept in after
    assert read_lock(path).entries == (SMALL, replace(FULL, context_k=16, because="x"))


def test_comments_follow_to_another_file(path: Path, tmp_path: Path) -> None:
    """A lock that was read carries its text."""
    path.write_text(f"# mine\n{HEAD}{ENTRY}")
    write_lock(tmp_path / "copy.lock", read_lock(path))
    assert (tmp_path / "copy.lock").read_text() == f"# mine\n{HEAD}\n{ENTRY}epoch = 1\nprovisional = false\n"


def test_an_entry_that_is_gone_leaves_the_file(path: Path) -> None:
    """And a new one comes in its place in the order."""
    written(path, SMALL, FULL)
    first = replace(FULL, epoch=1)
    text = written(path, first, FULL)
    assert "shop" not in text
    assert read_lock(path).entries == (first, FULL)


def test_what_became_empty_is_removed(path: Path) -> None:
    """A key without a value says nothing."""
    written(path, FULL)
    bare = replace(FULL, candidate_k=None, because="", judge={}, best_set=(), valid_until=None)
    text = written(path, bare)
    assert all(gone not in text for gone in ("candidate_k", "because", "judge", "best_set", "valid_until"))
    assert read_lock(path).entries == (bare,)


def test_null_is_absent(path: Path) -> None:
    """TOML has no null; a part without a value is left out."""
    written(path, replace(SMALL, parts={"reranker": None, "index": {"m": None, "ef": 64}}))
    assert read_lock(path).entries[0].parts == {"index": {"ef": 64}}


def test_a_text_that_looks_like_an_entry_is_a_text(path: Path) -> None:
    """Also over several lines."""
    odd = replace(SMALL, because='x\n[[tuned]]\npipeline = "no"\n')
    written(path, odd, FULL)
    assert read_lock(path).entries == (odd, FULL)


def test_a_person_may_write_days_and_hand_made_entries(path: Path) -> None:
    """A day counts to its end; a time without a zone is UTC."""
    path.write_text(f"{HEAD}{ENTRY}valid_until = 2026-12-31\ntuned_at = 2026-11-30T10:00:00\n")
    (entry,) = read_lock(path).entries
    assert entry.valid_until == datetime(2027, 1, 1, tzinfo=UTC).timestamp()
    assert entry.tuned_at == datetime(2026, 11, 30, 10, tzinfo=UTC).timestamp()
    write_lock(path, LockFile(entries=(entry,)))
    assert "valid_until = 2026-12-31\n" in path.read_text()


def test_the_newest_epoch_of_a_basis_is_in_force(path: Path) -> None:
    """None where a basis has no entry."""
    lock = LockFile(entries=(FULL, replace(FULL, epoch=1), SMALL))
    assert lock.tuned("support-bot", FULL.basis) == FULL
    assert lock.tuned("support-bot", "0b6e2f94d8a1") is None


BAD = {
    "no TOML": (f"{HEAD}{ENTRY}because = \n", 6, "because ="),
    "a merge conflict": (f"{HEAD}<<<<<<< HEAD\n{ENTRY}=======\n>>>>>>> theirs\n", 2, "merge conflict"),
    "no format": (ENTRY, 1, "format"),
    "another file": ('version = 3\nformat = "poetry"\n', 1, "resweep.lock"),
    "no depth": (f'{HEAD}\n{ENTRY}\n[[tuned]]\npipeline = "shop"\nbasis = "b"\n', 8, "context_k"),
    "a depth of zero": (f"{HEAD}{ENTRY.replace('4', '0')}", 5, "1 or more"),
    "a depth in words": (f"{HEAD}{ENTRY}candidate_k = 'many'\n", 6, "whole number"),
    "a depth that is true": (f"{HEAD}{ENTRY}candidate_k = true\n", 6, "whole number"),
    "a best depth that is none": (f"{HEAD}{ENTRY}best_set = [4, 'x']\n", 6, "best_set"),
    "a time in words": (f"{HEAD}{ENTRY}valid_until = 'soon'\n", 6, "date"),
    "a table in a word": (f"{HEAD}{ENTRY}parts = 'all'\n", 6, "a table"),
    "one entry twice": (f"{HEAD}{ENTRY}{ENTRY}", 6, "line 2"),
    "entries in one line": (f"{HEAD}tuned = 3\n", 2, "[[tuned]]"),
}


@pytest.mark.parametrize(("text", "line", "word"), BAD.values(), ids=BAD.keys())
def test_what_cannot_be_read_is_named_with_its_line(path: Path, text: str, line: int, word: str) -> None:
    """And is not overwritten either."""
    path.write_text(text)
    with pytest.raises(LockFileError) as caught:
        read_lock(path)
    assert f"{path}:{line}: " in str(caught.value)
    assert word in str(caught.value)
    with pytest.raises(LockFileError):
        write_lock(path, LockFile(entries=(SMALL,)))
    assert path.read_text() == text


def test_a_later_format_is_left_to_a_later_resweep(path: Path) -> None:
    """Neither read nor written."""
    path.write_text(f'format = "resweep.lock/2"\n{ENTRY}')
    for act in (lambda: read_lock(path), lambda: write_lock(path, LockFile())):
        with pytest.raises(NewerFormatError, match=r"resweep\.lock/2"):
            act()


def test_bytes_that_are_no_text_are_named_with_their_line(path: Path) -> None:
    """A file of another encoding."""
    path.write_bytes(HEAD.encode() + b"# caf\xe9\n")
    with pytest.raises(LockFileError, match=":2: expected UTF-8"):
        read_lock(path)


def test_a_missing_file_says_where_to_give_its_place(path: Path) -> None:
    """Not an error of Python's."""
    with pytest.raises(LockFileError, match="--lock"):
        read_lock(path)


def test_a_folder_that_is_away_says_so(tmp_path: Path) -> None:
    """Writing names the file and what to do."""
    with pytest.raises(LockFileError, match="name another"):
        write_lock(tmp_path / "nowhere" / "resweep.lock", LockFile(entries=(SMALL,)))


def test_a_write_that_fails_leaves_the_file_and_no_litter(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole or not at all."""
    text = written(path, SMALL)
    monkeypatch.setattr(os, "fsync", _disk_full)
    with pytest.raises(LockFileError, match="No space left"):
        write_lock(path, LockFile(entries=(FULL,)))
    assert path.read_text() == text
    assert os.listdir(path.parent) == ["resweep.lock"]


def test_rights_and_links_stay(path: Path, tmp_path: Path) -> None:
    """A file shared with a group stays shared; a link stays a link."""
    written(path, SMALL)
    path.chmod(0o664)
    link = tmp_path / "link.lock"
    link.symlink_to(path)
    write_lock(link, LockFile(entries=(FULL,)))
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o664
    assert read_lock(path).entries == (FULL,)


def test_the_nearest_file_upward_is_found(tmp_path: Path) -> None:
    """From a folder; a folder of that name is none."""
    deep = tmp_path / "a" / "b"
    (deep / "resweep.lock").mkdir(parents=True)
    (tmp_path / "resweep.lock").touch()
    assert find_lock(deep) == tmp_path / "resweep.lock"
    (tmp_path / "a" / "resweep.lock").touch()
    assert find_lock(deep) == tmp_path / "a" / "resweep.lock"


def _disk_full(_: int) -> None:
    raise OSError(28, "No space left on device")
