"""The folding thread's work on one call: read the answer, count it into its minute, sample it."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from resweep.domain.event import ErrorInfo, Hit, RetrievalEvent
from resweep.domain.fold import fold
from resweep.domain.snapshot import Exemplar
from resweep.domain.values import identity, label
from resweep.domain.window import MINUTE, Window
from resweep.record.asking import FILTERS, QUERY_LONGEST, filters_of, key_of, question, veiled
from resweep.record.call import FAILED, PARTIAL, Call
from resweep.record.confidence import Confidence
from resweep.record.content import Redaction, asked, with_texts
from resweep.record.failure import spare_the_interrupt
from resweep.record.hits import Hits
from resweep.record.ids import Ids
from resweep.record.lean import Lean
from resweep.record.panel import Panels
from resweep.record.passages import HITS_MAX, Found, find
from resweep.record.plain import Plain, Run
from resweep.record.stages import Staged, staged
from resweep.record.tokens import Tokens
from resweep.record.uniform import Uniform
from resweep.record.watching import Watch

if TYPE_CHECKING:
    from resweep.record.spans import Spans

Key = tuple[str, str]  # pipeline, config
CONFIGS_MAX = 256  # whose references are kept at once
# Answers that are looked into: beyond this rate every second, third, … one, so that folding takes a few per
# cent of a core however busy the service is. Calls, depths, times and errors are counted of all.
DETAILED_PER_S = 1_000
DETAILED_BURST = 4_000
_log = logging.getLogger("resweep")


class Folding:
    """Windows not yet handed over and the events sampled. One thread at a time may use it.

    `salt` veils queries and filter values. `dropped` counts records given up by reason.
    """

    def __init__(
        self, ids: Ids, salt: bytes, sample_rate: float, sample_per_minute: int, spans: Spans | None = None
    ) -> None:
        self.windows: dict[tuple[str, str, int], Window] = {}
        self.samples: list[RetrievalEvent] = []
        self.dropped: Counter[str] = Counter()
        self.exemplars: dict[Key, Exemplar] = {}
        self.panels: Panels | None = Panels(salt)  # None where nobody compares answers
        self._spans = spans
        self._ids = ids
        self._salt = salt
        self._sampling = (sample_rate, sample_per_minute)
        self._uniform: dict[Key, Uniform] = {}
        self._confidence: dict[Key, Confidence] = {}
        self._hits: dict[int, Hits] = {}
        self._lean: dict[int, Lean] = {}
        self._plain: dict[tuple[str, str, int], Plain] = {}
        self._run: Run | None = None
        self.budget_burst = float(DETAILED_BURST)
        self._budget = self.budget_burst
        self._refilled_at = perf_counter()
        self._stride = 1
        self._turn = 0

    def begin(self, waiting: int) -> None:
        """Prepare for so many calls: how many of them are looked into follows from the budget."""
        now = perf_counter()
        earned = (now - self._refilled_at) * DETAILED_PER_S
        self._budget = min(self.budget_burst, self._budget + earned)
        self._refilled_at = now
        self._stride = max(1, -(-waiting // max(1, int(self._budget))))
        self._budget = max(0.0, self._budget - waiting / self._stride)
        self._turn = 0

    def held_bytes(self) -> int:
        """Return about what the calls folded since last asked kept alive while they waited."""
        return sum(hits.restart() for hits in self._hits.values())

    def window(self, pipeline: str, config: str, minute: int) -> Window:
        """Return the window of a minute."""
        key = (pipeline, config, minute)
        window = self.windows.get(key)
        if window is None:
            window = self.windows[key] = Window(pipeline, config, minute)
        return window

    def take(self, call: Call) -> None:
        """Count one call; one whose answer cannot be read is counted all the same."""
        run = self._run
        if run is None or call.site is not run.site or not run.begins <= call.t0 < run.ends:
            run = self._run = self._start(call)
        before = run.window.counts.get("retrievals", 0)
        try:
            if call.state or type(call.result) is not list or not self._counted(run, call):
                self._read(call, run.window)
        except BaseException as error:  # noqa: BLE001 - an answer may do anything when looked at
            spare_the_interrupt(error)
            watch, ts = call.site.watch, self._ids.wall(call.t0)
            _log.debug("%s: an answer could not be read: %s", watch.name, type(error).__name__)
            self.drop(watch.pipeline, watch.config, "invalid", 1, ts)
            if run.window.counts.get("retrievals", 0) == before:
                returned = len(call.result) if type(call.result) is list else 1
                blank = self._blank(call, ts)._replace(partial=call.state == PARTIAL, returned=returned)
                fold(run.window, blank)

    def _start(self, call: Call) -> Run:
        """Look up what the calls of a site in this minute need."""
        site, watch, ts = call.site, call.site.watch, self._ids.wall(call.t0)
        minute = int(ts // MINUTE)
        window = self.window(watch.pipeline, watch.config, minute)
        return Run(
            site,
            call.t0 - (ts - minute * MINUTE),
            call.t0 + ((minute + 1) * MINUTE - ts),
            window,
            self._plain_of(window),
            self._lean_of(watch),
            self._uniform_of(watch),
            self._confidence_of(watch),
        )

    def _counted(self, run: Run, call: Call) -> bool:
        """Count a plain answer the short way; False for one that is not plain, or is sampled."""
        passages, kwargs, site = call.result, call.kwargs, call.site
        if call.extra is not None or call.total is not None or call.overhead or not site.watch.plain:
            return False
        if kwargs and not FILTERS.isdisjoint(kwargs):
            return False
        # The first answers are read with care, for the self-check.
        if len(passages) > HITS_MAX or not site.watch.seen_passages:
            return False
        if run.uniform.takes(call.number, run.window.minute):
            self._read(call, run.window, sampled=True)
            return True
        self._turn += 1
        totals = None
        detailed = bool(passages) and self._turn % self._stride == 0
        if detailed and self.panels is not None and self._panelled(run, call):
            self._read(call, run.window, sampled=False)
            return True
        if detailed:
            totals = run.lean.totals(passages)
            if totals.top is not None and run.confidence.low(totals.top, totals.last):
                run.window.add("low_confidence")
        run.plain.add(site.asked_by(call.args, kwargs), len(passages), call.t1 - call.t0, totals)
        return True

    def _panelled(self, run: Run, call: Call) -> bool:
        """Whether a plain call's question belongs to the panel of its hour."""
        assert self.panels is not None
        watch = call.site.watch
        key = key_of(call.site.query_of(call.args, call.kwargs), watch.static_filters, self._salt)
        return self.panels.wants(watch.pipeline, watch.config, run.window.minute, key)

    def _read(self, call: Call, window: Window, *, sampled: bool | None = None) -> None:
        """Count a call by what its event says. `sampled` is decided here where it is not yet."""
        watch, ts = call.site.watch, self._ids.wall(call.t0)
        watch.called = True
        if call.overhead:
            window.observe("overhead_seconds", call.overhead)
        if sampled is None:
            sampled = self._uniform_of(watch).takes(call.number, window.minute)
        if call.state == FAILED:
            self._failed(call, window, ts, sampled)
            return
        for query, result in self._retrievals(watch, call):
            self._answered(call, window, ts, query, result, sampled)

    def lose(self, watch: Watch, key: tuple[int, bool, int | None, int, str], times: int, ts: float) -> None:
        """Count calls whose records had no room: exactly, but without what their answers held."""
        state, none, asked, returned, error_class = key
        watch.called = True
        one = Window(watch.pipeline, watch.config, 0)
        event = RetrievalEvent(
            "",
            ts,
            watch.pipeline,
            watch.config,
            asked=asked,
            returned=returned,
            returned_none=none,
            partial=state == PARTIAL,
            error=ErrorInfo(error_class) if state == FAILED else None,
        )
        fold(one, event)
        one.add("dropped:ring_full")
        self.dropped["ring_full"] += times
        window = self.window(watch.pipeline, watch.config, int(ts // MINUTE))
        for name, amount in one.counts.items():
            window.add(name, amount * times)
        for histogram in one.histograms.values():
            histogram.counts = [count * times for count in histogram.counts]
            histogram.total *= times
        window.merge(Window(watch.pipeline, watch.config, 0, histograms=one.histograms))

    def drop(self, pipeline: str, config: str, reason: str, times: int, ts: float) -> None:
        """Count records given up."""
        if times > 0:
            self.dropped[reason] += times
            self.window(pipeline, config, int(ts // MINUTE)).add(f"dropped:{reason}", times)

    def _retrievals(self, watch: Watch, call: Call) -> Sequence[tuple[Any, Any]]:
        if watch.multi is not None:
            try:
                return watch.multi(call.args, call.kwargs, call.result)
            except BaseException as error:  # noqa: BLE001 - an answer in a shape not foreseen is one answer
                spare_the_interrupt(error)
                _log.debug("%s: an answer to several questions could not be told apart", watch.name)
        return ((call.site.query_of(call.args, call.kwargs), call.result),)

    def _failed(self, call: Call, window: Window, ts: float, sampled: bool) -> None:
        failure, watch = call.failure, call.site.watch
        assert failure is not None
        message = None
        if watch.capture != "none" and failure.message:
            message = Redaction(watch.redact)(failure.message, QUERY_LONGEST)
        error, trace_id = ErrorInfo(failure.error_class, message), staged(call.extra, {}).trace_id
        event = self._blank(call, ts)._replace(error=error, trace_id=trace_id)
        fold(window, event)
        if failure.got is not None and failure.expected is not None:
            window.add(f"dim:{failure.got}:{failure.expected}")
        if self._spans is not None:
            self._trace(call, event, None)
        if sampled:
            self._keep(call, window, event, call.site.query_of(call.args, call.kwargs), ())

    def _answered(
        self, call: Call, window: Window, ts: float, query: Any, result: Any, sampled: bool
    ) -> None:
        watch = call.site.watch
        found = _find(watch, result)
        stages = staged(call.extra, found.facts)
        reader = self._reader(watch)
        hits, estimated = reader.of(found.passages)
        if stages.scored is not None:
            hits = _scored(hits, reader.of(find(stages.scored).passages)[0])
        event = self._event(call, ts, found, hits, estimated, stages)
        fold(window, event)
        watch.seen(hits)
        top = hits[0].score if hits else None
        if top is not None and not event.partial and self._confidence_of(watch).low(top, hits[-1].score):
            window.add("low_confidence")
        if self.panels is not None and not event.partial:
            self._compare(self.panels, call, window, event, query)
        if self._spans is not None:
            self._trace(call, event, query)
        if sampled:
            self._keep(call, window, event, query, found.passages)

    def _compare(self, panels: Panels, call: Call, window: Window, event: RetrievalEvent, query: Any) -> None:
        """Offer an answer to the panel."""
        key = key_of(query, event.filters, self._salt)
        if panels.wants(event.pipeline, event.config, window.minute, key):
            id_ = self._ids.text(call.t0, call.number, event.config)
            panels.take(event._replace(id=id_, query_key=key), window.minute)

    def _blank(self, call: Call, ts: float) -> RetrievalEvent:
        watch = call.site.watch
        return RetrievalEvent(
            "", ts, watch.pipeline, watch.config, call.site.asked_by(call.args, call.kwargs), call.total or 0
        )

    def _event(
        self,
        call: Call,
        ts: float,
        found: Found,
        hits: tuple[Hit, ...],
        estimated: bool,
        stages: Staged,
    ) -> RetrievalEvent:
        site, watch = call.site, call.site.watch
        asked = None if found.opaque else site.asked_by(call.args, call.kwargs)
        total = found.total if call.total is None else call.total
        return RetrievalEvent(
            "",
            ts,
            watch.pipeline,
            watch.config,
            asked,
            total if stages.returned is None else min(stages.returned, total),
            hits,
            None,
            None,
            stages.candidates,
            stages.reranked,
            filters_of(call.kwargs, watch.static_filters) if call.kwargs or watch.static_filters else None,
            call.t1 - call.t0,
            stages.seconds,
            call.state == PARTIAL,
            None,
            found.none,
            stages.stop,
            stages.trace_id,
            False,
            estimated,
        )

    def _confidence_of(self, watch: Watch) -> Confidence:
        key = (watch.pipeline, watch.config)
        confidence = self._confidence.get(key)
        if confidence is None:
            _keep_below(self._confidence, CONFIGS_MAX)
            confidence = self._confidence[key] = Confidence()
        return confidence

    def _reader(self, watch: Watch) -> Hits:
        hits = self._hits.get(id(watch.tokens))
        if hits is None:
            hits = self._hits[id(watch.tokens)] = Hits(Tokens(watch.tokens))
        return hits

    def settle(self) -> None:
        """Bring what was counted in bulk into the windows."""
        for key, plain in self._plain.items():
            plain.into(self.window(*key))
        self._plain.clear()
        self._run = None

    def _plain_of(self, window: Window) -> Plain:
        key = (window.pipeline, window.config, window.minute)
        plain = self._plain.get(key)
        if plain is None:
            plain = self._plain[key] = Plain()
        return plain

    def _lean_of(self, watch: Watch) -> Lean:
        lean = self._lean.get(id(watch.tokens))
        if lean is None:
            lean = self._lean[id(watch.tokens)] = Lean(self._reader(watch))
        return lean

    def _uniform_of(self, watch: Watch) -> Uniform:
        key = (watch.pipeline, watch.config)
        uniform = self._uniform.get(key)
        if uniform is None:
            _keep_below(self._uniform, CONFIGS_MAX)
            uniform = self._uniform[key] = Uniform(*self._sampling)
        return uniform

    def _trace(self, call: Call, event: RetrievalEvent, query: Any) -> None:
        """Make the event's span, and remember its trace as an example of its duration."""
        assert self._spans is not None
        watch = call.site.watch
        text = question(query) if watch.capture == "text" else None
        event = event._replace(
            id=self._ids.text(call.t0, call.number, watch.config),
            query=None if text is None else Redaction(watch.redact)(text, QUERY_LONGEST),
            latency_s=call.t1 - call.t0,
        )
        self._spans.emit(event, None if call.extra is None else call.extra.around, watch.record.observed)
        if event.trace_id is not None and event.error is None:
            labels = (("trace_id", event.trace_id),)
            _keep_below(self.exemplars, CONFIGS_MAX)
            self.exemplars[watch.pipeline, watch.config] = Exemplar(labels, call.t1 - call.t0, event.ts)

    def _keep(
        self, call: Call, window: Window, event: RetrievalEvent, query: Any, passages: Sequence[object]
    ) -> None:
        window.add("sampled:uniform")
        whole = self._whole(call, event, query, passages)
        self.samples.append(whole)
        if call.site.watch.hold is not None:
            call.site.watch.hold(whole.id, call)

    def _whole(
        self, call: Call, event: RetrievalEvent, query: Any, passages: Sequence[object]
    ) -> RetrievalEvent:
        """The event as it is sent: with id and query key, and with texts where content is wanted."""
        watch = call.site.watch
        filters = event.filters
        event = event._replace(
            id=self._ids.text(call.t0, call.number, watch.config),
            query_key=key_of(asked(query, watch.redact), filters, self._salt),
            user_key=_user(watch, call),
            p=self._uniform_of(watch).share,
        )
        if watch.capture == "none":
            return event._replace(filters=veiled(filters, self._salt) if filters else None)
        redact = Redaction(watch.redact)
        text = question(query)
        event = event._replace(
            query=None if text is None else redact(text, QUERY_LONGEST),
            hits=with_texts(event.hits, passages, redact),
        )
        self.drop(watch.pipeline, watch.config, "redaction", redact.failed, event.ts)
        return event


def _keep_below(entries: dict[Key, Any], most: int) -> None:
    """Make room for one more entry: the oldest goes."""
    while len(entries) >= most:
        del entries[next(iter(entries))]


def _find(watch: Watch, result: Any) -> Found:
    if watch.extract is None:
        return find(result)
    try:
        return find(watch.extract(result))
    except Exception as error:  # noqa: BLE001 - a user's function may raise anything
        _log.warning("%s: extract= raised %s; reading the answer as it is", watch.name, type(error).__name__)
        watch.extract = None
        return find(result)


def _scored(hits: tuple[Hit, ...], scored: tuple[Hit, ...]) -> tuple[Hit, ...]:
    """Give hits the scores that an inner call returned beside the same passages."""
    by_id = {hit.id: hit for hit in scored if hit.score is not None}
    return tuple(
        hit._replace(score=other.score, kind=other.kind, score_state="ok")
        if hit.score is None and (other := by_id.get(hit.id)) is not None
        else hit
        for hit in hits
    )


def _user(watch: Watch, call: Call) -> str | None:
    """Whose retrieval it was, as the user's function says; what it returns should itself be a pseudonym."""
    if watch.user_key is None:
        return None
    try:
        key = identity(watch.user_key(*call.args, **call.kwargs))
    except Exception:  # noqa: BLE001 - a user's function may raise anything
        return None
    return None if key is None else label(key)
