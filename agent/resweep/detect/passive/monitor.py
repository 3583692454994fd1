"""The passive layers of one (pipeline, config), folded: one system flag, one traffic flag, one outcome flag.

Twins speak for the system, novelty and the query groups for the traffic, levels for both; which of them spoke
first does not matter to a reader, so what one says sharpens the flag another has opened.
"""

from __future__ import annotations

from collections import deque
from hashlib import blake2b
from math import inf, log, nan

import msgspec

from resweep.detect.passive.attribution import Cause, cause
from resweep.detect.passive.book import Book
from resweep.detect.passive.changes import LayerState, State
from resweep.detect.passive.compare import Outcome as Comparison
from resweep.detect.passive.compare import compare
from resweep.detect.passive.direction import Direction
from resweep.detect.passive.features import INDEX, SCORES, STREAMS, Groups, Memory, block, rows
from resweep.detect.passive.level_cause import LevelCause, level_cause, vanished
from resweep.detect.passive.levels import Finding, Levels
from resweep.detect.passive.onset import Rows, sharpened
from resweep.detect.passive.outcome import Outcome, OutcomeAlarm
from resweep.detect.passive.pinned import Pinned
from resweep.detect.passive.settings import DAY, HOUR, PassiveSettings
from resweep.detect.passive.summary import Summary
from resweep.detect.passive.traces import TwinTraces, twin_traces
from resweep.detect.passive.twins import TwinAlarm, Twins, Vote
from resweep.detect.passive.vocabulary import Vocabulary
from resweep.detect.passive.words import (
    levels_message,
    novelty_message,
    outcome_message,
    renumbered_message,
    scale_message,
    twins_message,
)
from resweep.domain.sample import BottomK, Record, depth, end_scores, unpack_answer
from resweep.domain.verdict import Component, Layer, Severity

IDS = ("answers_new", "answers_fresh", "pairs_new", "shapes_new", "passages_new", "misfit")
SCORED = (*SCORES, "pairs_new", "shapes_new")
REFRESH = (20, 60, 120, 240, 400)  # records after opening at which a cause is worked out again
LASTING = 72 * HOUR  # a traffic change that lasts so long is no long weekend
# So long everything is new to the layer itself, which is no fact of the traffic.
YOUNG = 2 * DAY
NEWNESS = [INDEX[name] for name in (*IDS, "sources_new", "words_new")]
QUARTER = 900
ACROSS = 400  # questions of a before/after report
SUSPECT = log(0.1)


class Monitor:
    """Feed it summaries in time order; read `book.changes` and `states()`."""

    begun = 0.0  # time of the first record
    novel_at = 0.0  # when unknown questions were last told

    def __init__(self, pipeline: str, config: str, basis: str, settings: PassiveSettings) -> None:
        self.settings = settings
        self.book = Book(pipeline, config, basis)
        self.twins = Twins(settings)
        self.levels = Levels(settings.budget_levels_days, settings.holidays)
        self.outcome = Outcome(settings)
        self.pinned = Pinned()
        self.passages = Vocabulary(settings.passages)
        self.sources = Vocabulary(settings.passages // 4)
        self.memory = Memory(settings.held, 2 * settings.passages, self.passages, self.sources)
        self.groups = Groups()
        self.direction = Direction()
        self.hour = -1
        self.sample = BottomK(settings.sample_size)
        self.held: dict[int, Record] = {}  # the running block
        self.fresh: dict[int, Record] = {}  # not yet in the vocabularies
        self.block_start = 0.0
        self.calls: dict[str, int] = {}  # counts of the running quarter of an hour
        self.quarter = -1
        self.calls_at = (0.0, -1)  # time and number of its last minute
        self.rows: deque[Rows] = deque(maxlen=3)
        self.records = 0
        self.ts = 0.0
        self.passages_since = 0
        self.system: TwinAlarm | Finding | None = None  # what opened the system flag
        self.traffic: TwinAlarm | Finding | None = None
        self.refresh: list[int] = []
        self.quiet_scores_until = 0.0
        self.known_again = 0.0
        self.outcome_quiet: dict[str, float] = {}
        self.parent: Monitor | None = None  # the config before this one, for the before/after report
        self.parent_config = ""
        self.across: dict[int, Vote] = {}  # first answer of each question against the parent's

    # -- in ---------------------------------------------------------------------------------------------

    def consume(self, summary: Summary) -> None:
        """Take one closed minute, merged over replicas."""
        hour = int(summary.start // HOUR)
        if hour != self.hour:
            self.hour, self.sample = hour, BottomK(self.settings.sample_size)
        self.ts = max(self.ts, summary.start)
        for record in summary.sample.records():
            if record.key < self.sample.bound:
                self.sample.add(record)
                self._record(record)
        self._outcome(summary)

    def advance(self, ts: float) -> None:
        """Close what time alone closes."""
        self.ts = max(self.ts, ts)
        if self.held and self._full(ts):
            self._close_block()
        if int(ts // QUARTER) > self.quarter:
            self._close_quarter()

    def finish(self) -> None:
        """End a recording: judge the calls of the quarter that is still open."""
        self._close_quarter()

    def _record(self, record: Record) -> None:
        self.ts = record.ts
        self.begun = self.begun or record.ts
        self.records += 1
        if self.held and self._full(record.ts):
            self._close_block()
        if self.parent is not None and record.known and len(self.across) < ACROSS:
            self._set_beside(self.parent, record)
        voter = _voter(record)
        self.fresh[voter] = record
        first, last = end_scores(record.answer)
        self.twins.top.add(record.ts, first)
        if record.known:
            alarm = self.twins.process(record)
            if alarm is not None:
                self._on_twins(alarm, record)
            elif self.system is not None and self.twins.back:
                self._came_back(record)
        if self.direction.add(first, last):
            self._turned(record.ts, record.number)
        if not self.held:
            self.block_start = record.ts
        self.held[voter] = record
        if self.refresh and self.records >= self.refresh[0]:
            del self.refresh[0]
            self._refresh_twins()

    def _remember(self) -> None:
        """Note the passages and sources of answers not noted yet: each distinct query of a block once."""
        for record in self.fresh.values():
            answer = unpack_answer(record.answer)
            self.passages.see(record.ts, answer.ids, answer.sources, answer.tokens)
            self.sources.see(record.ts, answer.sources, answer.sources, answer.sources)
            self.passages_since += len(answer.ids)
        self.fresh.clear()

    def _set_beside(self, parent: Monitor, record: Record) -> None:
        """Compare a question's first answer under this config with its last one under the config before."""
        before = parent.twins.answer(record.key)
        if before is not None and record.key not in self.across:
            outcome = compare(before, record.answer, parent.twins.tolerance)
            vote = Vote(record.ts, record.number, record.key, outcome, before, record.answer)
            self.across[record.key] = vote

    def before_after(self) -> tuple[TwinTraces, Cause] | None:
        """Return what a declared change did to the answers of the same questions; None before 25 of them."""
        if self.parent is None or len(self.across) < 25:
            return None
        self._remember()
        votes = list(self.across.values())
        known = (self.parent.passages, self.parent.sources)
        traces = twin_traces(votes, votes[0].ts, known, self.parent.twins.tolerance)
        return traces, cause(traces)

    # -- twins ------------------------------------------------------------------------------------------

    def _on_twins(self, alarm: TwinAlarm, record: Record) -> None:
        if alarm.outcome is None:
            self._novel(alarm, record)
        elif alarm.outcome is Comparison.CHANGED:
            self._changed(alarm, record)
        else:
            self._harmless(alarm, record)

    def _changed(self, alarm: TwinAlarm, record: Record) -> None:
        already = self.system is not None
        traces = self._traces(alarm.onset_ts)
        share = alarm.hits / alarm.n
        if not already or not isinstance(self.system, TwinAlarm):
            self.system = alarm
        self._tell_system(alarm, traces, cause(traces), record.ts, record.number)
        self.twins.rebase(alarm.onset_ts, share)
        self._freeze(alarm.onset_ts)
        self.passages_since = 0
        self.refresh = [self.records + n for n in REFRESH]

    def _tell_system(
        self, alarm: TwinAlarm, traces: TwinTraces, found: Cause, ts: float, number: int
    ) -> None:
        severity = self._severity(found, traces)
        self.book.opened(
            "silent_change",
            "twins",
            found.components,
            severity,
            twins_message(alarm, found.components, found.why),
            {
                "log_evidence": round(alarm.log_evidence, 2),
                "changed": alarm.hits,
                "twins": alarm.n,
                "traces": _plain(traces),
            },
            ts=ts,
            number=number,
            onset_ts=alarm.onset_ts,
            onset_number=alarm.onset_number,
        )

    def _severity(self, found: Cause, traces: TwinTraces) -> Severity:
        """New documents that change a part of the answers are a bulk ingest: a notice."""
        grown = found.components == ("corpus",) and not (traces.copies or 0.0) > 0.3
        return "notice" if grown and traces.changed < self.settings.small_ingest else "warning"

    def _traces(self, onset_ts: float) -> TwinTraces:
        self._remember()
        tolerance = self.twins.tolerance if self.twins.open_share is None else self.twins.open_tolerance
        return twin_traces(list(self.twins.votes), onset_ts, (self.passages, self.sources), tolerance)

    def _refresh_twins(self) -> None:
        alarm = self.system
        if not isinstance(alarm, TwinAlarm) or "silent_change" not in self.book.open:
            return
        traces = self._traces(alarm.onset_ts)
        self._tell_system(alarm, traces, cause(traces), self.ts, -1)

    def _harmless(self, alarm: TwinAlarm, record: Record) -> None:
        """Scores or ids moved over the same passages: a notice, unless answers changed along with them."""
        kind = alarm.outcome
        assert kind is not None
        newest = {v.key: v for v in self.twins.votes if v.ts >= alarm.onset_ts}
        changed = sum(v.outcome is Comparison.CHANGED for v in newest.values())
        if changed >= 4 and changed > 0.1 * len(newest):
            self._changed(alarm._replace(outcome=Comparison.CHANGED, n=len(newest), hits=changed), record)
            return
        if len(newest) < 30 and alarm.hits < 20:
            return
        share = alarm.hits / alarm.n
        if kind is Comparison.SCORES:
            self._scale(
                share,
                record.ts,
                record.number,
                alarm.onset_ts,
                alarm.onset_number,
                flipped=self.direction.turning,
            )
        else:
            self._renumbered(
                share,
                renumbered_message(share),
                "twins",
                record.ts,
                record.number,
                alarm.onset_ts,
                alarm.onset_number,
            )
        self.twins.accept(record.ts)

    def _scale(
        self, share: float, ts: float, number: int, onset_ts: float, onset: int, *, flipped: bool
    ) -> None:
        self.levels.blank(SCORED)
        self.levels.since = max(self.levels.since, ts)
        told = self.book.open.get("score_scale")
        flipped = flipped or (told is not None and told.evidence["direction_changed"] is True)
        self.book.opened(
            "score_scale",
            "twins",
            ("index",),
            "notice",
            scale_message(share, flipped),
            {"share": round(share, 3), "direction_changed": flipped},
            ts=ts,
            number=number,
            onset_ts=onset_ts,
            onset_number=onset,
        )

    def _renumbered(
        self, share: float, message: str, layer: Layer, ts: float, number: int, onset_ts: float, onset: int
    ) -> None:
        self.levels.blank(IDS)
        self.levels.blank(tuple(name for name in STREAMS if name.startswith("group_")))
        self.levels.since = max(self.levels.since, ts)
        self.groups = Groups()
        self.book.opened(
            "ids_renumbered",
            layer,
            ("index",),
            "notice",
            message,
            {"share": round(share, 3)},
            ts=ts,
            number=number,
            onset_ts=onset_ts,
            onset_number=onset,
        )

    def _turned(self, ts: float, number: int) -> None:
        """The order of scores turned round: the ranking still means the same."""
        if "silent_change" in self.book.open:  # a new scoring side may bring a new direction: no news
            self.levels.blank(SCORED)
            return
        self._scale(1.0, ts, number, ts, number, flipped=True)

    def _came_back(self, record: Record) -> None:
        """The answers from before an open change are back: the old system answers again."""
        self.twins.settle()
        self._thaw()
        self.system = None
        self.refresh = []
        self.book.cleared("silent_change", record.ts, record.number)

    # -- traffic ----------------------------------------------------------------------------------------

    def _novel(self, alarm: TwinAlarm, record: Record) -> None:
        self.twins.rebase_novelty(record.ts, alarm.onset_ts)
        self.novel_at = record.ts
        if self.traffic is None:
            self.traffic = alarm
        lasting = self.twins.known_collapsed(alarm) and not self._holiday(record.ts)
        self.book.opened(
            "traffic_changed",
            "twins",
            ("traffic",),
            "warning" if lasting else "notice",
            novelty_message(alarm),
            {"log_evidence": round(alarm.log_evidence, 2), "novel": alarm.hits, "queries": alarm.n},
            ts=record.ts,
            number=record.number,
            onset_ts=alarm.onset_ts,
            onset_number=alarm.onset_number,
        )
        self._freeze(alarm.onset_ts)

    # -- levels -----------------------------------------------------------------------------------------

    def _full(self, ts: float) -> bool:
        age, n = ts - self.block_start, len(self.held)
        if self.system is not None or self.traffic is not None:
            return n >= 60 or (age >= HOUR / 2 and n >= 30) or (age >= DAY and n >= 5)
        return (age >= HOUR / 2 and n >= 30) or (age >= DAY and n >= 5)

    def _close_block(self) -> None:
        chosen = sorted(self.held)[: self.settings.block_size]  # the same queries whatever the traffic
        records = sorted((self.held[key] for key in chosen), key=lambda r: (r.ts, r.id))
        self.held = {}
        self._remember()
        reference = self.levels.frozen or self.levels.reference
        means = reference.beta[0] if reference is not None else None
        matrix = rows(records, self.memory, self.groups, means, self.direction.sign or 1)
        self.rows.append(
            Rows(
                [r.ts for r in records],
                [r.number for r in records],
                [depth(r.answer) for r in records],
                matrix,
            )
        )
        closed = block(records, matrix)
        if records[-1].ts < self.begun + YOUNG:
            closed.mean[NEWNESS] = nan
        self.pinned.add(closed)
        found = self.levels.add(closed)
        if self.levels.reference is not None:
            self.groups.freeze()
        if found is not None:
            self._on_levels(found, records[-1])
        elif self.levels.frozen is not None:
            self._follow(records[-1])

    def _on_levels(self, found: Finding, record: Record) -> None:
        assert self.levels.reference is not None
        found = sharpened(found, list(self.rows), self.levels.reference)
        self.passages_since = self._passages_after(found.onset_ts)
        if self.direction.turning:
            self._turned(record.ts, record.number)
            return
        what = self._level_cause(found)
        if what.reason == "silent_change" and self.system is None and self.twins.will_speak(found.onset_ts):
            return  # repeated questions tell a change of system from other questions, and are on their way
        if what.reason == "score_scale":
            self._scale(
                found.after[INDEX["pairs_new"]],
                record.ts,
                record.number,
                found.onset_ts,
                found.onset_number,
                flipped=False,
            )
            return
        if what.reason == "ids_renumbered":
            share = float(max(found.after[INDEX["passages_new"]], found.after[INDEX["misfit"]]))
            message = levels_message(found, what.reason, what.components, what.why)
            self._renumbered(
                share, message, "levels", record.ts, record.number, found.onset_ts, found.onset_number
            )
            return
        if what.reason == "silent_change" and self.system is None:
            self.system = found
        elif self.traffic is None and what.reason == "traffic_changed":
            self.traffic = found
        self._tell_levels(found, what, record.ts, record.number)
        self._freeze(found.onset_ts)

    def _freeze(self, onset_ts: float) -> None:
        self.levels.freeze(onset_ts)
        self.memory.frozen_at = min(self.memory.frozen_at, onset_ts)

    def _thaw(self) -> None:
        self.levels.thaw()
        self.memory.frozen_at = inf

    def _passages_after(self, onset_ts: float) -> int:
        """How many passages the newest blocks hold since an onset."""
        return sum(
            count for b in self.rows for ts, count in zip(b.ts, b.depths, strict=True) if ts >= onset_ts
        )

    def _level_cause(self, found: Finding) -> LevelCause:
        gone = vanished(self.sources, found.onset_ts, max(1, self.passages_since))
        what = level_cause(found, gone)
        if what.reason == "silent_change" and self.twins.speaks_for_same(found.onset_ts):
            return LevelCause(
                "traffic_changed", ("traffic",), "repeated questions still get the same answers"
            )
        return what

    def _tell_levels(self, found: Finding, what: LevelCause, ts: float, number: int) -> None:
        if what.reason in ("score_scale", "ids_renumbered"):
            return
        loud = what.reason == "silent_change" and not self._holiday(ts)
        severity: Severity = "warning" if loud else "notice"
        self.book.opened(
            what.reason,
            "levels",
            what.components,
            severity,
            levels_message(found, what.reason, what.components, what.why),
            {
                "log_evidence": round(found.log_evidence, 2),
                "loudest": found.loudest,
                "effects": _effects(found),
            },
            ts=ts,
            number=number,
            onset_ts=found.onset_ts,
            onset_number=found.onset_number,
        )

    def _follow(self, record: Record) -> None:
        """Look at the newest blocks with the eyes of before the change: sharpen the cause, or clear."""
        found = self.levels.against_frozen()
        if found is None:
            return
        if found.log_evidence < SUSPECT and self._calm(record.ts):
            self._levels_back(record)
        elif isinstance(self.system, Finding) and self._due(found, record):
            self._sharpen(found, record)
        elif self._lasting(record.ts):
            self._outlast()

    def _sharpen(self, found: Finding, record: Record) -> None:
        """Work the cause out again; where it is the questions after all, the open flag says so."""
        what = self._level_cause(found)
        if what.reason in ("silent_change", "traffic_changed"):
            self._tell_levels(found, what._replace(reason="silent_change"), record.ts, record.number)

    def _calm(self, ts: float) -> bool:
        """Whether the time since a level change is as long as what it took to find it, and half a day."""
        after, open_ = self.levels.after, self.system or self.traffic
        if open_ is None or isinstance(self.system, TwinAlarm):
            return False
        if isinstance(open_, TwinAlarm) and ts < self.novel_at + 2 * DAY:  # quiet for a day, silent for one
            return False
        window = open_.window if isinstance(open_, Finding) else 0
        return len(after) >= max(8, window) and ts - after[0].ts >= DAY / 2

    def _levels_back(self, record: Record) -> None:
        self._thaw()
        if isinstance(self.system, Finding):
            self.system = None
            self.book.cleared("silent_change", record.ts, record.number)
        if self.traffic is not None:
            self.traffic = None
            self.book.cleared("traffic_changed", record.ts, record.number)

    def _holiday(self, ts: float) -> bool:
        return int(ts // DAY) in self.settings.holidays

    def _due(self, found: Finding, record: Record) -> bool:
        """A few times early on; and when a change told softly on a holiday is there on a working day."""
        flag = self.book.open.get("silent_change")
        soft = flag is not None and flag.severity == "notice" and not self._holiday(record.ts)
        return len(self.levels.after) in (2, 4, 8) or (soft and found.log_evidence >= 0)

    def _lasting(self, ts: float) -> bool:
        """Whether a change of traffic is old, and the last day alone still shows it."""
        if self.traffic is None or ts - self.traffic.onset_ts <= LASTING:
            return False
        today = self.levels.against_frozen(ts - DAY)
        return today is not None and today.log_evidence >= 0

    def _outlast(self) -> None:
        flag = self.book.open.get("traffic_changed")
        if flag is not None and flag.severity == "notice":
            message = f"{flag.message} It has lasted more than {LASTING / HOUR:.0f} hours: no long weekend."
            self.book.updated("traffic_changed", flag.components, "warning", message, {})

    # -- outcome ----------------------------------------------------------------------------------------

    def _outcome(self, summary: Summary) -> None:
        quarter = int(summary.start // QUARTER)
        if quarter != self.quarter:
            self._close_quarter()
            self.quarter = quarter
        for name, amount in summary.counts.items():
            self.calls[name] = self.calls.get(name, 0) + amount
        self.calls_at = (summary.start, summary.last)

    def _close_quarter(self) -> None:
        """Judge the outcome of a quarter of an hour."""
        if not self.calls:
            return
        counts, self.calls = self.calls, {}
        ts, number = self.calls_at
        alarm = self.outcome.add(ts, number, counts)
        if alarm is not None:
            self._dropped(alarm, ts, number)
        elif self.outcome.recovered:
            self.outcome.settle()
            self.book.cleared("quality_drop", ts, number)
            self.book.cleared("short_returns", ts, number)

    def _dropped(self, alarm: OutcomeAlarm, ts: float, number: int) -> None:
        short = alarm.measure == "short"
        components: tuple[Component, ...] = ("depth", "filter") if short else ("outcome",)
        self.book.opened(
            "short_returns" if short else "quality_drop",
            "outcome",
            components,
            "warning" if short else "page",
            outcome_message(alarm),
            {
                "measure": alarm.measure,
                "n": alarm.n,
                "hits": alarm.hits,
                "expected": round(alarm.expected, 4),
                "log_evidence": round(alarm.log_evidence, 2),
            },
            ts=ts,
            number=number,
            onset_ts=alarm.onset_ts,
            onset_number=alarm.onset_number,
        )

    def take_calendar(self, settings: PassiveSettings) -> None:
        """Go by another calendar of holidays than the saved state did."""
        self.settings = msgspec.structs.replace(self.settings, holidays=settings.holidays)
        self.levels.holidays = self.outcome.holidays = settings.holidays

    # -- out --------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """The change was accepted (a new sweep, an acknowledgement): close all, learn the present."""
        number = -1
        for reason in list(self.book.open):
            self.book.cleared(reason, self.ts, number)
        self.twins.settle()
        self.levels.settle()
        self.memory.frozen_at = inf
        self.outcome.settle()
        self.pinned.restart()
        self.system = self.traffic = None

    def states(self) -> list[LayerState]:
        """Return the state of each layer."""
        config = self.book.config
        return [
            _state(
                config,
                "twins",
                self.twins.log_m,
                self.twins.peak,
                self._twins_note(),
                learning=not self.twins.armed_from,
                alarm=isinstance(self.system, TwinAlarm),
            ),
            _state(
                config,
                "levels",
                self.levels.log_m,
                max(self.levels.peaks.values(), default=-99.0),
                self._levels_note(),
                learning=self.levels.stage < 0,
                alarm=isinstance(self.system or self.traffic, Finding),
            ),
            _state(
                config,
                "outcome",
                self.outcome.log_m,
                self.outcome.peak,
                "",
                learning=not self.outcome.ready,
                alarm="quality_drop" in self.book.open,
            ),
        ]

    def _twins_note(self) -> str:
        votes = self.twins.churn[Comparison.CHANGED].votes
        if self.twins.armed_from:
            return f"{votes} comparisons kept"
        return f"needs a day and {self.settings.least_votes} repeated questions; {votes} so far"

    def _levels_note(self) -> str:
        return {
            -1: f"needs 24 hours and 12 blocks of questions; {len(self.levels.blocks)} so far",
            0: "provisional; weekly comparison not ready",
            1: "weekly comparison not ready",
            2: "",
        }[self.levels.stage]


def _voter(record: Record) -> int:
    """Return whose vote a record is: its question's, or where none is recorded that of its passages.

    So a burst of one question counts once, recorded or not. Empty answers have nothing in common but that.
    """
    size = 4 * depth(record.answer)  # ids come first in a packed answer
    if record.known or not size:
        return record.key
    return int.from_bytes(blake2b(record.answer[:size], digest_size=8).digest(), "little")


def _state(
    config: str, layer: Layer, evidence: float, peak: float, note: str, *, learning: bool, alarm: bool
) -> LayerState:
    state: State = (
        "alarm" if alarm else "learning" if learning else "suspect" if evidence > SUSPECT else "quiet"
    )
    return LayerState(
        config=config, layer=layer, state=state, evidence=round(evidence, 2), peak=round(peak, 2), note=note
    )


def _plain(traces: TwinTraces) -> dict[str, object]:
    values = msgspec.structs.asdict(traces)
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in values.items()}


def _effects(found: Finding) -> dict[str, object]:
    """The loudest streams with expected and observed means and the effect in SD between queries."""
    order = sorted(range(INDEX["group_0"]), key=lambda i: -abs(found.scores[i]))[:8]
    return {
        STREAMS[i]: {
            "before": round(float(found.before[i]), 4),
            "after": round(float(found.after[i]), 4),
            "sd": round(float(found.effects[i]), 2),
        }
        for i in order
        if found.before[i] == found.before[i]
    }
