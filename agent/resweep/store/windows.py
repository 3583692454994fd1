"""Reading windows back: minutes, and the same counts by hour and by day."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlalchemy import select

from resweep.domain.window import Window
from resweep.store.names import label
from resweep.store.part import Part
from resweep.store.payload import unpack
from resweep.store.schema import configs, pipelines, windows
from resweep.store.tally import DAY, HOUR, MINUTE

if TYPE_CHECKING:
    import pandas as pd


class WindowsPart(Part):
    """Windows by minute, hour and day. In them, feedback is what stands: a rater's last word."""

    def windows(self, pipeline: str, since_minute: int, until_minute: int) -> Sequence[Window]:
        """Return the minute windows in [since, until), by minute then config."""
        return self._windows(pipeline, MINUTE, since_minute, until_minute)

    def hours(self, pipeline: str, since_minute: int, until_minute: int) -> Sequence[Window]:
        """Return the windows of hours that begin in [since, until) unix minutes; `minute` is the first."""
        return self._windows(pipeline, HOUR, since_minute, until_minute)

    def days(self, pipeline: str, since_minute: int, until_minute: int) -> Sequence[Window]:
        """Return the windows of UTC days that begin in [since, until) unix minutes; `minute` is the first."""
        return self._windows(pipeline, DAY, since_minute, until_minute)

    def frame(self, pipeline: str, since_minute: int, until_minute: int) -> pd.DataFrame:
        """Return the minute windows in [since, until) as a pandas frame, for notebooks."""
        from resweep.store.frame import frame

        return frame(self.windows(pipeline, since_minute, until_minute))

    def _windows(self, pipeline: str, span: int, since: int, until: int) -> Sequence[Window]:
        query = (
            select(windows, configs.c.config)
            .join(configs, windows.c.config_id == configs.c.id)
            .join(pipelines, configs.c.pipeline_id == pipelines.c.id)
            .where(pipelines.c.name == label(pipeline), windows.c.span == span)
            .where(windows.c.start >= since, windows.c.start < until)
            .order_by(windows.c.start, configs.c.config)
        )
        with self._db.read() as connection:
            rows = connection.execute(query).mappings().all()
        return [unpack(row, pipeline, row["config"], row["start"]) for row in rows]
