"""States that need evidence over time."""

from __future__ import annotations

import itertools

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from resweep.detect.hysteresis import Hysteresis

WINDOWS = [0, 0, 5, 5, 0, 0, 4, 4, 4, 4, 2.5, 3.1, 2.5, 1, 1, 1, 0, 0, 4, 0, 4, 0, 4, 0]


def changes(values: list[float | None], restart_after: int | None = None) -> list[tuple[int, bool]]:
    """Return the windows at which the state changed, and to what."""
    gate, found = Hysteresis(open_at=3.0, close_at=2.0), []
    for at, value in enumerate(values):
        before = gate.is_open
        if gate.step(value) != before:
            found.append((at, gate.is_open))
        if at == restart_after:
            gate = msgspec.json.decode(msgspec.json.encode(gate), type=Hysteresis)
    return found


def test_one_opening_and_one_closing() -> None:
    """A blip of two and a value that comes and goes open nothing; a value in between closes nothing."""
    assert changes(list(WINDOWS)) == [(8, True), (15, False)]


def test_a_restart_changes_nothing() -> None:
    """The counts survive."""
    assert changes(list(WINDOWS), restart_after=9) == [(8, True), (15, False)]


def test_a_window_without_data_neither_opens_closes_nor_resets() -> None:
    """It is as if it had not been."""
    assert changes([4, None, 4, None, None, 4, 1, None, 1, 1]) == [(5, True), (9, False)]


@given(st.lists(st.floats(0, 6) | st.none(), max_size=60))
def test_it_never_flaps(values: list[float | None]) -> None:
    """Between two changes lie three windows with data at least."""
    at = [index for index, _ in changes(values)]
    seen = [sum(v is not None for v in values[a + 1 : b + 1]) for a, b in itertools.pairwise(at)]
    assert all(n >= 3 for n in seen)
