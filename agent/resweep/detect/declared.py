"""Layer 1: what the declared configs and the records of tuned depths say by themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from resweep.detect.finding import Finding
from resweep.detect.settings import DetectSettings
from resweep.detect.state import ConfigState, PipelineState
from resweep.domain.batch import ConfigRecord
from resweep.domain.diff import Change as PartChange
from resweep.domain.diff import components, in_words
from resweep.domain.fingerprint import depths
from resweep.domain.verdict import TunedK

Tuned = Mapping[str, TunedK]  # by basis, the epoch in force
Differ = Callable[[ConfigRecord, ConfigRecord], Sequence[PartChange]]


def declared(
    p: PipelineState, tuned: Tuned, now: float, s: DetectSettings, differ: Differ
) -> Iterator[Finding]:
    """Yield what layer 1 finds in a pipeline now (unix seconds)."""
    c = p.in_charge
    if c is None:
        return
    record = tuned.get(c.record.basis)
    yield from _config_changed(p, c, record, now, s, differ)
    if record is None:
        yield from _untuned(p, c, tuned)
    else:
        yield from _k_mismatch(p, c, record)
        yield from _record_expired(p, c, record, now)
    yield from _mixed_fleet(p, s)


def live_depths(c: ConfigState) -> tuple[int | None, int | None]:
    """Return (context_k, candidate_k) in use: as declared, else the depth most often asked for."""
    context_k, candidate_k = depths(c.record.document)
    if context_k is None and c.asked:
        context_k = max(c.asked, key=c.asked.__getitem__)
    return context_k, candidate_k


def _config_changed(
    p: PipelineState,
    c: ConfigState,
    record: TunedK | None,
    now: float,
    s: DetectSettings,
    differ: Differ,
) -> Iterator[Finding]:
    change = p.change
    if change is None or change.to_basis != c.record.basis:
        return
    if record is not None and (
        record.tuned_at >= change.onset_ts or now - change.ts > s.tuned_change_notice_s
    ):
        return
    before = p.configs[change.from_config].record
    shown = [x for x in differ(before, c.record) if x.effect != "inert"]
    words = (
        in_words(shown) if shown else f"the config changed from {change.from_config} to {change.to_config}"
    )
    yield Finding(
        reason="config_changed",
        layer="declared",
        config=change.to_config,
        basis=change.to_basis,
        components=components(shown) or ("unknown",),
        severity="warning" if record is None else "notice",
        moves="expired" if record is None else None,
        message=_changed_message(p.name, words, record),
        evidence=_changed_evidence(change.from_config, change.to_config, shown, c.calls),
        next_command=f"resweep sweep {p.name}" if record is None else f"resweep status {p.name}",
        onset_ts=change.onset_ts,
        onset_event=change.onset_event,
    )


def _changed_message(pipeline: str, words: str, record: TunedK | None) -> str:
    if record is None:
        return f"the tuned k of {pipeline} has expired: {words}; run the sweep"
    return f"{pipeline}: {words}; k = {record.context_k} was tuned for this config before and holds"


def _changed_evidence(
    before: str, after: str, parts: Sequence[PartChange], calls: int
) -> Mapping[str, object]:
    changed = [
        {"path": x.path, "from": x.before, "to": x.after, "effect": x.effect, "component": x.component}
        for x in parts
    ]
    return {"from_config": before, "to_config": after, "changed": changed, "calls": calls}


def _untuned(p: PipelineState, c: ConfigState, tuned: Tuned) -> Iterator[Finding]:
    if p.change is not None and p.change.to_basis == c.record.basis:
        return  # said already, and better, by config_changed
    k, _ = live_depths(c)
    shown = "not declared" if k is None else str(k)
    told = f"k = {shown} was never tuned for this config"
    if c.record.default_k is not None:
        framework = str(c.record.observed.get("framework", "the framework"))
        told = f"k = {c.record.default_k} is only the default of {framework}: nobody chose it"
    if tuned:  # on record before this agent saw any traffic: a lock file from an earlier config
        last = max(tuned.values(), key=lambda one: one.tuned_at)
        told += f" (k = {last.context_k} was, for basis {last.basis}, which does not run)"
    yield Finding(
        reason="untuned",
        layer="declared",
        config=c.record.config,
        basis=c.record.basis,
        components=("depth",),
        severity="notice",
        moves="untuned",
        message=f"{p.name} has no tuned k: {told}; run the sweep, or accept the k in use",
        evidence={"context_k": k, "default_k": c.record.default_k},
        next_command=f"resweep sweep {p.name}",
        onset_ts=c.first_ts,
        onset_event=c.first_event,
    )


def _k_mismatch(p: PipelineState, c: ConfigState, record: TunedK) -> Iterator[Finding]:
    context_k, candidate_k = live_depths(c)
    differs = [
        f"{name} is {live}, tuned was {best}"
        for name, live, best in (
            ("context_k", context_k, record.context_k),
            ("candidate_k", candidate_k, record.candidate_k),
        )
        if live is not None and best is not None and live != best
    ]
    if not differs:
        return
    yield Finding(
        reason="k_mismatch",
        layer="declared",
        config=c.record.config,
        basis=c.record.basis,
        components=("depth",),
        severity="warning",
        moves="suspect",
        message=f"{p.name} does not run at its tuned depth: {' and '.join(differs)}; "
        "set it back, or accept the depth in use",
        evidence={
            "context_k": context_k,
            "candidate_k": candidate_k,
            "tuned_context_k": record.context_k,
            "tuned_candidate_k": record.candidate_k,
        },
        next_command=f"resweep accept {p.name} --k {context_k}",
        onset_ts=c.run_ts,
        onset_event=c.run_event,
    )


def _record_expired(p: PipelineState, c: ConfigState, record: TunedK, now: float) -> Iterator[Finding]:
    if record.valid_until is None or now <= record.valid_until:
        return
    yield Finding(
        reason="record_expired",
        layer="declared",
        config=c.record.config,
        basis=c.record.basis,
        components=("unknown",),
        severity="warning",
        moves="expired",
        message=f"the tuned k of {p.name} (k = {record.context_k}) is past the date it was accepted for; "
        "run the sweep, or accept it again",
        evidence={"valid_until": record.valid_until, "context_k": record.context_k},
        next_command=f"resweep sweep {p.name}",
        onset_ts=record.valid_until,
    )


def _mixed_fleet(p: PipelineState, s: DetectSettings) -> Iterator[Finding]:
    if sum(c.overlap_ts is not None for c in p.configs.values()) < 2:
        return
    mixed = [c for c in p.configs.values() if _outlasts(c, s)]
    if len(mixed) < 2:
        return
    ids = sorted(c.record.config for c in mixed)
    since = min(c.overlap_ts or 0.0 for c in mixed)
    minutes = (max(c.last_ts for c in mixed) - since) / 60
    newcomer = max(mixed, key=lambda c: (c.first_ts, c.record.config)).record
    yield Finding(
        reason="mixed_fleet",
        layer="declared",
        config=newcomer.config,
        basis=newcomer.basis,
        components=("unknown",),
        severity="warning",
        message=f"{p.name} has been answering with {len(ids)} configs side by side for {minutes:.0f} minutes "
        f"({', '.join(ids)}): finish the rollout or take it back",
        evidence={"configs": ids, "since_ts": since, "minutes": round(minutes, 1)},
        next_command=f"resweep status {p.name}",
        onset_ts=since,
    )


def _outlasts(c: ConfigState, s: DetectSettings) -> bool:
    return c.overlap_ts is not None and c.last_ts - c.overlap_ts >= s.mixed_after_s
