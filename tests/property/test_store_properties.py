"""What the store adds up is the same in any order and grouping."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine

from resweep.domain.verdict import TunedK
from resweep.domain.window import Group, Window
from resweep.store import payload
from resweep.store.ledger import claim
from resweep.store.lockfile import LockFile, read_lock, write_lock
from resweep.store.names import label
from resweep.store.schema import batches

SHARED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
KEYS = st.dictionaries(st.sampled_from([f"f{n}" for n in range(30)]), st.integers(0, 9), max_size=8)


@SHARED
@given(parts=st.lists(KEYS, min_size=1, max_size=6), split=st.integers(0, 6))
def test_bounded_rows_do_not_depend_on_the_order(
    parts: list[dict[str, int]], split: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Merged one by one, backwards, or in two halves: the same keys stay, with the same counts."""
    monkeypatch.setattr(payload, "GROUPS_MAX", 5)
    windows = [_window(part) for part in parts]
    forward, backward = _merged(windows), _merged(windows[::-1])
    halves = _merged([_merged(windows[:split]), _merged(windows[split:])])
    assert forward.groups == backward.groups == halves.groups
    assert sum(g.n for g in forward.groups.values()) == sum(sum(part.values()) for part in parts)


@given(st.lists(st.integers(0, 30), max_size=60))
def test_a_batch_number_is_new_exactly_once(numbers: list[int]) -> None:
    """Ranges remember what a set would, however numbers come."""
    engine = create_engine("sqlite://")
    seen: set[int] = set()
    with engine.begin() as connection:
        batches.create(connection)
        for number in numbers:
            assert claim(connection, "w", number, 0.0) == (number not in seen)
            seen.add(number)
        rows = connection.execute(batches.select()).all()
    engine.dispose()
    assert sum(row.last_seq - row.first_seq + 1 for row in rows) == len(seen)
    assert len(rows) == sum(number - 1 not in seen for number in seen)


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=30)
VALUES = st.recursive(
    st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT.filter(bool), inner, max_size=3),
    max_leaves=8,
)


@settings(SHARED, max_examples=40)
@given(because=TEXT, parts=st.dictionaries(TEXT.filter(bool), VALUES, max_size=4), k=st.integers(1, 500))
def test_a_lock_file_gives_back_what_it_was_given(
    because: str, parts: dict[str, object], k: int, tmp_path: Path
) -> None:
    """Whatever names, texts and nesting a config has; over a file that was there, too."""
    entry = TunedK(pipeline="bot", basis="b1", context_k=k, because=because, parts=parts)
    path = tmp_path / "resweep.lock"
    write_lock(path, LockFile(entries=(entry, replace(entry, epoch=2, parts={}))))
    assert read_lock(path).entries[0] == entry


@given(st.text(max_size=200) | st.text("ab", min_size=60, max_size=70))
def test_a_name_fit_once_is_fit_for_ever(name: str) -> None:
    """What the store keeps, it finds again under the same name."""
    fit = label(name)
    assert label(fit) == fit
    assert 0 < len(fit) <= 64
    assert fit.encode()


def _window(part: dict[str, int]) -> Window:
    return Window("", "", 0, groups={key: Group(n=n) for key, n in part.items()})


def _merged(windows: list[Window]) -> Window:
    total = Window("", "", 0)
    for window in windows:
        total.merge(window)
        payload.bound(total)
    return total
