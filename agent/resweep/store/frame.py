"""Windows as a pandas frame, for notebooks: one row a (time, config), one column a figure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from resweep.domain.window import MINUTE, Window

if TYPE_CHECKING:
    import pandas as pd

FIGURES = ("retrievals", "ok", "empty_zero", "empty_none", "short", "errors", "partial")
MEANS = {
    "passages_mean": "retrieved_passages",
    "context_tokens_mean": "context_tokens",
    "source_diversity_mean": "source_diversity_ratio",
    "top_score_mean": "top_score",
    "latency_mean_s": "retrieval_duration_seconds",
}


def frame(windows: Iterable[Window]) -> pd.DataFrame:
    """Return windows as a frame indexed by (time in UTC, config).

    Counts are integers; a mean of what was not observed is NaN.
    """
    import pandas as pd  # loads for seconds: only who asks for a frame pays

    rows = [_row(window) for window in windows]
    table = pd.DataFrame(rows, columns=["time", "config", *FIGURES, *MEANS])
    table["time"] = pd.to_datetime(table["time"], unit="s", utc=True)
    return table.set_index(["time", "config"]).sort_index()


def _row(window: Window) -> dict[str, object]:
    row: dict[str, object] = {"time": window.minute * MINUTE, "config": window.config}
    row |= {name: window.get(name) for name in FIGURES}
    for column, name in MEANS.items():
        histogram = window.histograms.get(name)
        row[column] = histogram.sum / histogram.n if histogram is not None and histogram.n else float("nan")
    return row
