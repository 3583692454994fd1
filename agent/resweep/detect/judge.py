"""The judge: all layers folded into flags and one verdict per basis.

Layers yield findings, statements of what holds now. The judge turns them into flags: a finding that
appears opens one, a finding that stays keeps it, one that goes clears it. So the same cause is one flag,
a restart opens nothing twice (the state is dumped and loaded), and nothing hangs once its cause is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import msgspec

from resweep.detect.declared import declared
from resweep.detect.finding import Finding
from resweep.detect.generator import generator
from resweep.detect.introspect import introspected
from resweep.detect.settings import DetectSettings
from resweep.detect.state import ConfigState, PipelineState
from resweep.detect.track import settle, track
from resweep.domain.batch import ConfigRecord
from resweep.domain.diff import Change, diff
from resweep.domain.invalidation import InvalidationRules
from resweep.domain.verdict import Flag, FlagChange, Layer, TunedK, Verdict, VerdictState, worst
from resweep.domain.window import Window

STATE_VERSION = 1


class JudgeState(msgspec.Struct):
    """What survives a restart."""

    version: int = STATE_VERSION
    pipelines: dict[str, PipelineState] = msgspec.field(default_factory=dict)
    flags: dict[str, Flag] = msgspec.field(default_factory=dict)
    resolved: dict[str, Flag] = msgspec.field(default_factory=dict)  # by a person, while the cause is found
    since: dict[str, tuple[VerdictState, float]] = msgspec.field(default_factory=dict)


class Judge:
    """Declared and introspected layers over deltas of counts, in time order per pipeline.

    `state` is what `dump` returned earlier. Holds no clock: time comes with every call, in unix seconds;
    `event` is the number of the last event of a delta in a replay, None in a live agent.
    """

    def __init__(
        self, settings: DetectSettings, rules: InvalidationRules, state: bytes | None = None
    ) -> None:
        self.settings = settings
        self.rules = rules
        self._state = JudgeState() if state is None else msgspec.json.decode(state, type=JudgeState)
        self._tuned: dict[str, dict[str, TunedK]] = {}
        self._maintenance: frozenset[str] = frozenset()
        self._changes: list[FlagChange] = []
        self._diffs: dict[tuple[str, str], Sequence[Change]] = {}

    def set_tuned(self, tuned: Iterable[TunedK]) -> None:
        """Take the records of tuned depths; of one basis the last that is given is in force."""
        self._tuned = {}
        for record in tuned:
            self._tuned.setdefault(record.pipeline, {})[record.basis] = record

    def set_maintenance(self, pipelines: Iterable[str]) -> None:
        """Take the pipelines under announced work: their flags are notices until it ends."""
        self._maintenance = frozenset(pipelines)

    def config_seen(self, record: ConfigRecord) -> None:
        """Take a config's declaration, before or after its first traffic."""
        self._pipeline(record.pipeline).declare(record)

    def observe(self, window: Window, ts: float, event: int | None = None) -> None:
        """Take a delta of counts whose last event was at `ts`, numbered `event`."""
        p = self._pipeline(window.pipeline)
        track(p, window, ts, event, self.settings)
        self._look(p, ts, event)

    def advance(self, now: float, event: int | None = None, *, final: bool = False) -> None:
        """Let time pass to `now` without traffic; `final` at the end of a recording."""
        for p in self._state.pipelines.values():
            self._look(p, now, event, final=final)

    def drain(self) -> list[FlagChange]:
        """Return what opened, sharpened or cleared since the last call."""
        changes, self._changes = self._changes, []
        return changes

    def merge(self, change: FlagChange) -> None:
        """Take a flag that another layer opened, updated or cleared."""
        key = change.flag.key
        if key in self._state.resolved:
            if change.kind == "cleared":
                del self._state.resolved[key]
            return
        if change.kind == "cleared":
            self._state.flags.pop(key, None)
        else:
            self._state.flags[key] = change.flag
        self._changes.append(change)

    def resolve(self, key: str, now: float) -> bool:
        """Clear a flag on a person's word at `now` (unix s); False where none such is open.

        It opens again only after its cause was gone in between.
        """
        flag = self._state.flags.get(key)
        if flag is None:
            return False
        self._close(flag, now, None)
        self._state.resolved[key] = flag
        return True

    def hold(self, pipeline: str, basis: str, layer: Layer, findings: Iterable[Finding], now: float) -> None:
        """Keep open exactly what another layer finds on one basis now (unix s): opened once, cleared once."""
        p = self._pipeline(pipeline)

        def of_it(flag: Flag) -> bool:
            return flag.pipeline == p.name and flag.layer == layer and flag.basis == basis

        self._reconcile(p, of_it, findings, now, None)

    def open_flags(self) -> list[Flag]:
        """Return the open flags, oldest first."""
        return sorted(self._state.flags.values(), key=lambda f: (f.opened_ts, f.key))

    def verdicts(self, now: float) -> list[Verdict]:
        """Return the verdict of each basis in charge or seen within `retire_s`, by pipeline."""
        return [v for p in self._sorted() for v in self._pipeline_verdicts(p, now)]

    def dump(self) -> bytes:
        """Return the state as JSON."""
        return msgspec.json.encode(self._state)

    def _sorted(self) -> list[PipelineState]:
        return [self._state.pipelines[name] for name in sorted(self._state.pipelines)]

    def _pipeline(self, name: str) -> PipelineState:
        return self._state.pipelines.setdefault(name, PipelineState(name))

    def _look(self, p: PipelineState, now: float, event: int | None, *, final: bool = False) -> None:
        """Settle, find, and bring the flags of one pipeline in line with what was found."""
        settle(p, now, event, self.settings, final=final)

        def own(flag: Flag) -> bool:
            return flag.pipeline == p.name and flag.layer in _OWN

        self._reconcile(p, own, self._findings(p, now), now, event)

    def _reconcile(
        self,
        p: PipelineState,
        of_it: Callable[[Flag], bool],
        findings: Iterable[Finding],
        now: float,
        event: int | None,
    ) -> None:
        """Make the flags that are `of_it` those of some findings, but for what a person resolved."""
        found = {f.key(p.name): f for f in findings}
        mine = {k: f for k, f in self._state.flags.items() if of_it(f)}
        for key in mine.keys() - found.keys():
            self._close(mine[key], now, event)
        for key in [k for k, f in self._state.resolved.items() if of_it(f) and k not in found]:
            del self._state.resolved[key]
        for key in found.keys() - self._state.resolved.keys():
            finding = found[key]
            self._keep(p, key, finding, mine.get(key), now, event)

    def _findings(self, p: PipelineState, now: float) -> Iterator[Finding]:
        yield from declared(p, self._tuned.get(p.name, {}), now, self.settings, self._diff)
        yield from introspected(p, self.settings)
        c = p.in_charge
        if c is not None and c.facts:
            record = self._tuned.get(p.name, {}).get(c.record.basis)
            yield from generator(p.name, c.record.config, c.record.basis, c.facts, record)

    def _diff(self, before: ConfigRecord, after: ConfigRecord) -> Sequence[Change]:
        key = (before.config, after.config)
        if key not in self._diffs:
            self._diffs[key] = diff(before.document, after.document, self.rules)
        return self._diffs[key]

    def _close(self, flag: Flag, now: float, event: int | None) -> None:
        del self._state.flags[flag.key]
        cleared = replace(flag, cleared_ts=now, cleared_at_event=event)
        self._changes.append(FlagChange(flag=cleared, kind="cleared"))

    def _keep(
        self, p: PipelineState, key: str, found: Finding, old: Flag | None, now: float, event: int | None
    ) -> None:
        flag = self._flag(p, key, found, old, now, event)
        if old == flag:
            return
        self._state.flags[key] = flag
        if old is None or _sharper(old, flag):
            self._changes.append(FlagChange(flag=flag, kind="opened" if old is None else "updated"))

    def _flag(
        self, p: PipelineState, key: str, f: Finding, old: Flag | None, now: float, event: int | None
    ) -> Flag:
        severity = self.settings.severities.get(f.reason, f.severity)
        if p.name in self._maintenance:
            severity = "notice"
        return Flag(
            key=key,
            pipeline=p.name,
            config=f.config,
            basis=f.basis,
            reason=f.reason,
            layer=f.layer,
            components=f.components,
            severity=severity,
            message=f.message,
            moves=f.moves,
            evidence=f.evidence,
            next_command=f.next_command,
            opened_ts=now if old is None else old.opened_ts,
            opened_at_event=event if old is None else old.opened_at_event,
            onset_ts=f.onset_ts if old is None else old.onset_ts,
            onset_event=f.onset_event if old is None else old.onset_event,
        )

    def _pipeline_verdicts(self, p: PipelineState, now: float) -> Iterator[Verdict]:
        if p.current is None:
            return
        current = p.configs[p.current]
        yield self._verdict(p, current, now)
        seen = {current.record.basis}
        for c in sorted(p.configs.values(), key=lambda c: -c.last_ts):
            settled = c.first_ts <= current.first_ts
            if (
                c.seen
                and settled
                and c.record.basis not in seen
                and now - c.last_ts <= self.settings.retire_s
            ):
                seen.add(c.record.basis)
                yield self._verdict(p, c, now)

    def _verdict(self, p: PipelineState, c: ConfigState, now: float) -> Verdict:
        basis = c.record.basis
        flags = [f for f in self.open_flags() if f.pipeline == p.name and f.basis == basis and f.moves]
        tuned = self._tuned.get(p.name, {}).get(basis)
        states: list[VerdictState] = [f.moves for f in flags if f.moves]
        state = worst([*states, "valid" if tuned else "untuned"])
        return Verdict(
            pipeline=p.name,
            basis=basis,
            config=c.record.config,
            state=state,
            why=_why(p.name, state, flags, tuned, c),
            since=self._since(p.name, basis, state, now),
            next_command=next((f.next_command for f in flags if f.moves == state), ""),
        )

    def _since(self, pipeline: str, basis: str, state: VerdictState, now: float) -> float:
        key = f"{pipeline}:{basis}"
        held, since = self._state.since.get(key, (None, now))
        if held != state:
            since = now
        self._state.since[key] = (state, since)
        return since


_OWN = ("declared", "introspected")


def _sharper(old: Flag, new: Flag) -> bool:
    return (old.components, old.severity, old.moves) != (new.components, new.severity, new.moves)


def _why(
    pipeline: str, state: VerdictState, flags: Sequence[Flag], tuned: TunedK | None, c: ConfigState
) -> str:
    told = next((f.message for f in flags if f.moves == state), "")
    if not told and tuned is not None:
        told = f"{pipeline} runs the config that k = {tuned.context_k} was tuned for"
        told += " (accepted provisionally)" if tuned.provisional else ""
    if not told:
        told = f"{pipeline} has no tuned k for this config"
    if c.record.opaque:
        told += f"; parts that cannot be compared: {', '.join(c.record.opaque)}"
    return told
