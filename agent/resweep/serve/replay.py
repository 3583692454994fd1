"""Recorded events through the judge on virtual time: what resweep would have said, and when.

Time is that of the events: nothing here reads a clock, so equal files give equal answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from resweep.detect.judge import Judge
from resweep.detect.passive.engine import PassiveEngine
from resweep.detect.passive.settings import with_holidays
from resweep.detect.settings import DetectSettings
from resweep.domain.batch import ConfigRecord
from resweep.domain.errors import InputError
from resweep.domain.event import Feedback, RetrievalEvent
from resweep.domain.fold import fold_counts
from resweep.domain.invalidation import InvalidationRules
from resweep.domain.verdict import Flag, TunedK, Verdict
from resweep.domain.window import MINUTE, Window
from resweep.ingest.jsonlines import SALT, BadLine, EventLine, Item, LineReader, lines_of

REPLAY_SCHEMA = "resweep.replay/1"
# Events told to the judge at once: few while a config is new, so that events are named exactly; fewer at a
# change of config.
DELTA_NEW, DELTA_KNOWN = 5, 25
NEW_EVENTS = 500
BAD_LINES_SHOWN = 20
PROGRESS_EVERY = 1000


@dataclass(slots=True)
class ReplayResult:
    """What a recording held and what was said of it."""

    events: int = 0
    feedback: int = 0
    bad_lines: int = 0
    bad: list[tuple[Path, BadLine]] = field(default_factory=list)
    unknown_fields: Mapping[str, int] = field(default_factory=dict)
    configs: dict[str, list[str]] = field(default_factory=dict)
    verdicts: Sequence[Verdict] = ()
    flags: Sequence[Flag] = ()

    def to_json(self) -> dict[str, object]:
        """Return the `resweep.replay/1` object."""
        worst = {v.pipeline: v for v in reversed(self.verdicts)}
        return {
            "schema": REPLAY_SCHEMA,
            "events": self.events,
            "feedback": self.feedback,
            "bad_lines": self.bad_lines,
            "bad": [{"file": str(at), "line": b.line, "reason": b.reason} for at, b in self.bad],
            "unknown_fields": dict(self.unknown_fields),
            "pipelines": {
                name: _pipeline(worst.get(name), ids) for name, ids in sorted(self.configs.items())
            },
            "flags": [flag_object(flag) for flag in self.flags],
        }


def _pipeline(verdict: Verdict | None, configs: list[str]) -> dict[str, object]:
    if verdict is None:
        return {"verdict": "too_little_data", "configs": configs}
    return {"verdict": verdict.state, "why": verdict.why, "basis": verdict.basis, "configs": configs}


def flag_object(flag: Flag) -> dict[str, object]:
    """Return a flag as it stands in `resweep.replay/1`."""
    return {
        "pipeline": flag.pipeline,
        "config": flag.config,
        "basis": flag.basis,
        "reason": flag.reason,
        "layer": flag.layer,
        "components": list(flag.components),
        "severity": flag.severity,
        "opened_at_event": flag.opened_at_event,
        "opened_ts": flag.opened_ts,
        "onset_event": flag.onset_event,
        "onset_ts": flag.onset_ts,
        "cleared_at_event": flag.cleared_at_event,
        "cleared_ts": flag.cleared_ts,
        "message": flag.message,
        "next_command": flag.next_command,
        "evidence": dict(flag.evidence),
    }


class Replayer:
    """Feeds items to the judge and keeps every flag that ever opened, as last reported."""

    def __init__(
        self, settings: DetectSettings, rules: InvalidationRules, tuned: Sequence[TunedK] = ()
    ) -> None:
        self.judge = Judge(settings, rules)
        self.file = Path()  # that is read now
        self._passive = with_holidays(settings.holidays)
        self.judge.set_tuned(sorted(tuned, key=lambda t: (t.epoch, t.tuned_at)))
        self.result = ReplayResult()
        self.engines: dict[str, PassiveEngine] = {}
        self._bases: dict[str, str] = {}
        self._now = 0.0
        self._latest: dict[str, str] = {}
        self._changed_at = 0
        self._deltas: dict[str, Window] = {}
        self._flags: dict[tuple[str, float], Flag] = {}

    def take(self, item: Item) -> None:
        """Take the next item of the recording."""
        if isinstance(item, EventLine):
            self._event(item.event, item.sizes)
        elif isinstance(item, ConfigRecord):
            self._flush(item.pipeline)
            self.judge.config_seen(item)
            self._bases[item.config] = item.basis
            self._config(item.pipeline, item.config)
        elif isinstance(item, Feedback):
            self.result.feedback += 1
            for engine in self.engines.values():
                engine.feedback(item)
        else:
            self.result.bad_lines += 1
            if len(self.result.bad) < BAD_LINES_SHOWN:
                self.result.bad.append((self.file, item))

    def finish(self) -> ReplayResult:
        """Close the recording: what was pending is told to the judge; return the result."""
        for pipeline in list(self._deltas):
            self._flush(pipeline)
        for engine in self.engines.values():
            engine.finish()
        self.judge.advance(self._now, self.result.events - 1, final=True)
        self._drain()
        self.result.verdicts = self.judge.verdicts(self._now)
        self.result.flags = sorted(self._flags.values(), key=_order)
        return self.result

    def _event(self, event: RetrievalEvent, sizes: tuple[int, int] | None) -> None:
        number = self.result.events
        self.result.events += 1
        self._now = max(self._now, event.ts)
        delta = self._deltas.get(event.pipeline)
        if delta is None or delta.config != event.config:
            self._flush(event.pipeline, number - 1)
            self._config(event.pipeline, event.config)
            delta = Window(event.pipeline, event.config, int(event.ts // MINUTE))
            self._deltas[event.pipeline] = delta
        fold_counts(delta, event)
        if sizes is not None:
            delta.add(f"dim:{sizes[0]}:{sizes[1]}")
        self._engine(event.pipeline).observe(number, event)
        if sizes is not None or delta.counts["retrievals"] >= self._delta(number):
            self._flush(event.pipeline, number)

    def _delta(self, number: int) -> int:
        return DELTA_NEW if number - self._changed_at < NEW_EVENTS else DELTA_KNOWN

    def _engine(self, pipeline: str) -> PassiveEngine:
        found = self.engines.get(pipeline)
        if found is None:
            found = PassiveEngine(
                pipeline, self._passive, salt=SALT, basis_of=lambda config: self._bases.get(config, config)
            )
            self.engines[pipeline] = found
        return found

    def _config(self, pipeline: str, config: str) -> None:
        if self._latest.get(pipeline) != config:
            self._latest[pipeline] = config
            self._changed_at = self.result.events
        known = self.result.configs.setdefault(pipeline, [])
        if config not in known:
            known.append(config)

    def _flush(self, pipeline: str, number: int | None = None) -> None:
        delta = self._deltas.pop(pipeline, None)
        if delta is not None:
            at = self.result.events - 1 if number is None else number
            self.judge.observe(delta, self._now, at)
            self._drain()

    def _drain(self) -> None:
        for engine in self.engines.values():
            for change in engine.drain():
                self.judge.merge(change)
        for change in self.judge.drain():
            flag = change.flag
            if change.kind != "cleared" and flag.opened_at_event is None:
                flag = replace(flag, opened_at_event=self.result.events - 1)
            self._flags[flag.key, flag.opened_ts] = flag


def _order(flag: Flag) -> tuple[int, float, str]:
    return (flag.opened_at_event or 0, flag.opened_ts, flag.key)


def replay(
    paths: Iterable[Path],
    *,
    settings: DetectSettings,
    rules: InvalidationRules,
    tuned: Sequence[TunedK] = (),
    progress: Callable[[int], None] | None = None,
    hear: Callable[[Item], None] | None = None,
    engines: dict[str, PassiveEngine] | None = None,
) -> ReplayResult:
    """Replay files of `resweep.event/1`, in the order given, as one recording.

    `progress` is told the number of bytes read now and then, `hear` every item; `engines` is filled with what
    the passive layers have learnt, by pipeline. Raises InputError for a file that cannot be opened, and when
    not one line of the recording could be used.
    """
    reader, replayer = LineReader(rules), Replayer(settings, rules, tuned)
    for path in paths:
        replayer.file = path
        _replay_file(path, reader, _told_too(replayer.take, hear), progress)
    result = replayer.finish()
    if engines is not None:
        engines.update(replayer.engines)
    result.unknown_fields = reader.unknown_fields
    if result.events == 0 and result.bad_lines:
        file, first = result.bad[0]
        raise InputError(
            f"expected resweep.event/1 lines; none of {result.bad_lines} could be used. "
            f"{file}, line {first.line}: {first.reason}"
        )
    return result


def _replay_file(
    path: Path, reader: LineReader, take: Callable[[Item], None], progress: Callable[[int], None] | None
) -> None:
    """Take a file's items; where a file breaks off, that is told and what came before it stands."""
    lines = lines_of(path)
    first = next(lines, None)  # a file that cannot be opened at all stops the replay
    if first is None:
        return
    try:
        for item in reader.read(_told(chain([first], lines), progress)):
            take(item)
    except InputError as error:
        take(BadLine(0, str(error)))


def _told_too(take: Callable[[Item], None], hear: Callable[[Item], None] | None) -> Callable[[Item], None]:
    if hear is None:
        return take

    def both(item: Item) -> None:
        take(item)
        hear(item)

    return both


def _told(lines: Iterator[bytes], progress: Callable[[int], None] | None) -> Iterator[bytes]:
    if progress is None:
        yield from lines
        return
    size = 0
    for n, line in enumerate(lines):
        size += len(line)
        if n % PROGRESS_EVERY == 0:
            progress(size)
            size = 0
        yield line
    progress(size)
