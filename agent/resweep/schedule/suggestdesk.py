"""Suggestions, out of band: a model looks at what waits in the queue, a few passages at a time.

It is asked about the cases that come next, in queue order, within a budget of passages an hour. What it says
is kept beside the cases; nothing counts until a person says the same.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from resweep.domain.case import Suggestion
from resweep.domain.clock import Clock, SystemClock
from resweep.label.suggesting import Suggester
from resweep.schedule.due import Due
from resweep.store.sql import SqlStore
from resweep.store.suggestions import ToSuggest

log = logging.getLogger("resweep.schedule")

RUN_S = 20.0  # a run asks for no longer than this; the call under way may take longer
PAGES_AHEAD = 10  # of the queue's head that the model sees; then it looks from the front again
FAILURES = 3  # in a row, after which a run gives up


class SuggestDesk:
    """Asks a model. A model that fails costs nothing but its suggestions."""

    def __init__(
        self,
        store: SqlStore,
        suggester: Suggester,
        clock: Clock | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._suggester = suggester
        self._clock = clock or SystemClock()
        self._monotonic = monotonic
        self._filled_at = monotonic()
        self._left = min(suggester.per_hour, 20.0)
        self._after, self._page = 0.0, 0
        self._failed = 0

    def run(self, run: Due | None = None) -> int:
        """Ask about what comes next in the queue, as far as budget and time go; return the suggestions made.

        Raises the model's own error where it fails several times in a row.
        """
        self._refill()
        until, made, self._failed = self._monotonic() + RUN_S, 0, 0
        while self._left >= 1.0 and self._monotonic() < until:
            some, end = self._store.unsuggested(self._suggester.depth, self._after)
            for one in some:
                made += self._ask(one, until)
                if self._left < 1.0 or self._monotonic() >= until:
                    return made
            self._page += 1
            if end is None or self._page >= PAGES_AHEAD:
                self._after, self._page = 0.0, 0
                break
            self._after = end
        return made

    def _refill(self) -> None:
        now, hour = self._monotonic(), self._suggester.per_hour
        self._left = min(max(1.0, hour / 6), self._left + (now - self._filled_at) * hour / 3600.0)
        self._filled_at = now

    def _ask(self, one: ToSuggest, until: float) -> int:
        found: list[Suggestion] = []
        for hit in one.hits:
            if self._left < 1.0 or self._monotonic() >= until:
                break
            self._left -= 1.0
            try:
                opinion = self._suggester.ask(one.query, hit.text or "")
            except Exception as error:
                self._failed += 1
                if self._failed >= FAILURES:
                    self._store.suggest(one.case_id, found)
                    raise
                log.warning("no suggestion for case %s: %s", one.case_id, type(error).__name__)
                continue
            self._failed = 0
            found.append(
                Suggestion(
                    passage_id=hit.id,
                    grade=opinion.grade,
                    judge=self._suggester.name,
                    reason=opinion.reason,
                    text_hash=hit.text_hash,
                    ts=self._clock.now(),
                )
            )
        self._store.suggest(one.case_id, found)
        return len(found)
