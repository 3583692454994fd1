"""Bring a delta of counts into a pipeline's state, and settle which config is in charge.

A rolling deploy alternates between two configs for minutes: neither run is long, neither is quiet, so
nothing settles until it is over.
"""

from __future__ import annotations

from resweep.detect import generator
from resweep.detect.settings import DetectSettings
from resweep.detect.state import Change, ConfigState, PipelineState
from resweep.domain.window import Group, Window

FORGET_AT = 200  # a tally is halved when it reaches this, so that old hours fade
GAP_WEIGHT = 0.05


def track(p: PipelineState, window: Window, ts: float, event: int | None, s: DetectSettings) -> None:
    """Add one delta, `ts` being the time of its last event (unix s) and `event` its number in a replay."""
    calls = window.get("retrievals")
    if any(name.startswith(generator.PREFIX) for name in window.counts):  # may come a minute after the call
        generator.take(p.state(window.config).facts, window, ts)
    if calls == 0:
        return
    c = p.state(window.config)
    _arrivals(p, c, calls, ts, event)
    _overlap(p, c, ts, s)
    _asked(c, window, s)
    _served(c, window, calls, event)
    _dims(c, window, ts, event, s)
    _groups(c, window)


def _arrivals(p: PipelineState, c: ConfigState, calls: int, ts: float, event: int | None) -> None:
    first_event = None if event is None else event - calls + 1
    if not c.seen:
        c.first_ts, c.first_event = ts, first_event
    if p.latest != c.record.config:
        c.run, c.run_event, c.run_ts = 0, first_event, ts
        p.latest = c.record.config
    c.run += calls
    c.calls += calls
    c.last_ts = max(c.last_ts, ts)
    if p.last_ts >= 0 and ts > p.last_ts:
        gap = (ts - p.last_ts) / calls
        p.gap_s = gap if p.gap_s == 0 else (1 - GAP_WEIGHT) * p.gap_s + GAP_WEIGHT * gap
    p.last_ts = max(p.last_ts, ts)


def _overlap(p: PipelineState, c: ConfigState, ts: float, s: DetectSettings) -> None:
    """Note since when more than one config has been answering side by side."""
    gap = max(s.mixed_gap_s, 10 * p.gap_s)
    answering = [o for o in p.configs.values() if o.seen and ts - o.last_ts <= gap]
    for other in p.configs.values():
        if other not in answering:
            other.overlap_ts = None
    if len(answering) > 1:
        for other in answering:
            other.overlap_ts = ts if other.overlap_ts is None else other.overlap_ts
    else:
        c.overlap_ts = None


def _asked(c: ConfigState, window: Window, s: DetectSettings) -> None:
    for name, n in window.counts.items():
        if name.startswith("asked:"):
            k = int(name[6:])
            c.asked[k] = c.asked.get(k, 0) + n
    if sum(c.asked.values()) >= FORGET_AT:
        c.asked = {k: n // 2 for k, n in c.asked.items() if n > 1}


def _served(c: ConfigState, window: Window, calls: int, event: int | None) -> None:
    asked = {int(name[6:]): n for name, n in window.counts.items() if name.startswith("asked:")}
    if not asked:
        return
    if window.get("served"):
        c.served.restart()
        return
    if c.served.calls == 0:
        c.served.since_event = None if event is None else event - calls + 1
    c.served.calls += sum(asked.values())
    c.served.cut += window.get("candidates_cut")
    c.served.asked = max(c.served.asked, *asked)
    most = [int(name[9:]) for name in window.counts if name.startswith("returned:")]
    c.served.most = max(c.served.most, *most)


def _dims(c: ConfigState, window: Window, ts: float, event: int | None, s: DetectSettings) -> None:
    found = {name[4:]: n for name, n in window.counts.items() if name.startswith("dim:")}
    if c.dims and ts - c.dims_ts > s.quiet_after_s:
        c.dims = {}
    for pair, n in found.items():
        if not c.dims:
            c.dims_event = event
        c.dims[pair] = c.dims.get(pair, 0) + n
        c.dims_ts = ts


def _groups(c: ConfigState, window: Window) -> None:
    ok = window.get("ok")
    if not ok:
        return
    empty = window.get("empty_zero") + window.get("empty_none")
    asked, returned = window.get("asked_sum"), window.get("returned_sum")
    c.plain.merge(Group(ok, empty, window.get("short"), returned, asked))
    for key, group in window.groups.items():
        c.groups.setdefault(key, Group()).merge(group)
    if c.plain.n >= FORGET_AT * 10:
        _halve(c.plain)
        for group in c.groups.values():
            _halve(group)


def _halve(g: Group) -> None:
    g.n, g.empty, g.short, g.returned, g.asked = (
        v // 2 for v in (g.n, g.empty, g.short, g.returned, g.asked)
    )


def settle(
    p: PipelineState, now: float, event: int | None, s: DetectSettings, *, final: bool = False
) -> None:
    """Put the config seen last in charge once it has taken over; note a change of basis.

    `final` says that nothing more will come (the end of a recording): a short run at the end counts.
    """
    if p.latest is None or p.latest == p.current:
        return
    c = p.configs[p.latest]
    if p.current is None or _took_over(p, c, now, s, final=final):
        _switch(p, c, event)


def _took_over(p: PipelineState, c: ConfigState, now: float, s: DetectSettings, *, final: bool) -> bool:
    others = p.others_last(c.record.config)
    if c.last_ts < others:
        return False
    if c.run >= s.switch_events and c.last_ts - others >= s.switch_quiet_s:
        return True
    return now - others >= s.settle_s or (final and c.run >= min(5, s.switch_events))


def _switch(p: PipelineState, c: ConfigState, event: int | None) -> None:
    before, p.current = p.in_charge, c.record.config
    if before is None:
        p.first_basis = c.record.basis
        return
    if before.record.basis == c.record.basis:
        return
    if p.change is not None and p.change.from_basis == c.record.basis:
        p.change = None  # undone
        return
    p.change = Change(
        from_config=before.record.config,
        to_config=c.record.config,
        from_basis=before.record.basis,
        to_basis=c.record.basis,
        ts=c.last_ts,
        opened_event=event,
        onset_ts=c.run_ts,
        onset_event=c.run_event,
    )
