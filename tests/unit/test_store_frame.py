"""The store's windows as a pandas frame."""

from __future__ import annotations

import math

from resweep.domain.window import Window
from resweep.store.frame import frame


def test_a_frame_has_a_row_a_minute_and_config() -> None:
    """Counts as they are, means of what was observed, NaN for what was not; in time order."""
    later, first = Window("p", "b", 2, {"retrievals": 3, "ok": 3}), Window("p", "a", 1)
    later.observe("retrieved_passages", 8)
    later.observe("retrieved_passages", 4)
    table = frame([later, first])
    assert list(table.index.get_level_values("config")) == ["a", "b"]
    row = table.loc[table.index[1]]
    assert (row["retrievals"], row["passages_mean"]) == (3, 6.0)
    assert math.isnan(row["latency_mean_s"])


def test_a_frame_of_nothing_has_its_columns() -> None:
    """A notebook's first cell works before the first traffic."""
    assert "retrievals" in frame([]).columns
