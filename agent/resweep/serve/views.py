"""What the API and the commands show: `resweep.status/1`, `resweep.flags/1`, `resweep.configs/1`."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from resweep.domain.verdict import Flag, TunedK, Verdict
from resweep.domain.window import MINUTE, Window, merged
from resweep.serve.accepting import running_k, tuned_object
from resweep.serve.agent import Agent, Desks
from resweep.serve.parts import version
from resweep.store.rows import Ack, ConfigSeen
from resweep.store.sql import SqlStore

STATUS_SCHEMA = "resweep.status/1"
FLAGS_SCHEMA = "resweep.flags/1"
CONFIGS_SCHEMA = "resweep.configs/1"
RECENT_MINUTES = 60


def status(agent: Agent, desks: Desks) -> dict[str, object]:
    """Return `resweep.status/1`: the agent, and every pipeline with its verdict in words."""
    now = agent.clock.now()
    health = agent.health()
    return {
        "schema": STATUS_SCHEMA,
        "ts": now,
        "agent": {
            "version": version(),
            "state": health.state,
            "ready": health.ready,
            "troubles": list(health.troubles),
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "since": agent.started,
            "store": desks.store.where,
            "spool": spool_object(desks),
            "lock_file": {
                "path": str(desks.watch.path) if desks.watch.path else None,
                "trouble": desks.watch.trouble,
            },
            "jobs": jobs_object(desks),
        },
        "pipelines": [
            pipeline | _passive(desks, str(pipeline["name"]))
            for pipeline in pipelines_object(desks.store, desks.desk.verdicts(now), now)
        ],
    }


def _passive(desks: Desks, pipeline: str) -> dict[str, object]:
    """Return the layers' states, and how far each config has come since its depth was chosen."""
    far = desks.passive.distances().get(pipeline, {})
    return {
        "layers": msgspec.to_builtins(desks.passive.layers().get(pipeline, [])),
        "distance": {config: found._asdict() for config, found in far.items()},
    }


def jobs_object(desks: Desks) -> list[Mapping[str, object]]:
    """Return what is known of every job."""
    return [msgspec.structs.asdict(state) for state in desks.runner.states()]


def spool_object(desks: Desks) -> dict[str, object]:
    """Return how much waits in the spool."""
    spool = desks.spool
    waiting = spool.waiting()
    return {
        "folder": str(spool.folder),
        "files": len(waiting),
        "bytes": sum(file.size for file in waiting),
        "oldest_ts": waiting[0].written / 1e9 if waiting else None,
        "left": {name: left.reason for name, left in spool.left.items()},
        "bad": count_bad(spool.folder),
    }


def count_bad(folder: Path) -> int:
    """Return how many batches were moved aside and still lie there."""
    return sum(1 for _ in (folder / "bad").glob("*.json"))


def pipelines_object(store: SqlStore, verdicts: Sequence[Verdict], now: float) -> list[dict[str, object]]:
    """Return every pipeline: its verdict, its depth, its traffic of the last hour, its open flags.

    Of several verdicts of a pipeline, the first is that of its config in charge.
    """
    tuned = store.tuned()
    flags = store.flags()
    working = store.in_maintenance(now)
    return [
        _pipeline(
            name,
            store,
            now,
            [v for v in verdicts if v.pipeline == name],
            [t for t in tuned if t.pipeline == name],
            [f for f in flags if f.pipeline == name],
        )
        | {"maintenance": name in working}
        for name in store.pipelines()
    ]


def _pipeline(
    name: str,
    store: SqlStore,
    now: float,
    verdicts: Sequence[Verdict],
    tuned: Sequence[TunedK],
    flags: Sequence[Flag],
) -> dict[str, object]:
    verdict = next(iter(verdicts), None)
    minute = int(now // MINUTE)
    recent = store.windows(name, minute - RECENT_MINUTES, minute + 1)
    chosen = [t for t in tuned if verdict is not None and t.basis == verdict.basis]
    return {
        "name": name,
        "verdict": verdict.state if verdict else "too_little_data",
        "why": verdict.why if verdict else "no traffic has been judged yet",
        "since": verdict.since if verdict else None,
        "config": verdict.config if verdict else None,
        "basis": verdict.basis if verdict else None,
        "next_command": verdict.next_command if verdict else "",
        "context_k": _context_k(store, verdict),
        "tuned": tuned_object(chosen[-1]) if chosen else None,
        "last_hour": traffic_object(recent),
        "configs": {c: traffic_object([w for w in recent if w.config == c]) for c in _configs(recent)},
        "bases": [msgspec.to_builtins(v) for v in verdicts],
        "open_flags": len(flags),
    }


def _context_k(store: SqlStore, verdict: Verdict | None) -> int | None:
    """Return the depth that the config of a verdict runs with."""
    if verdict is None:
        return None
    records = (r for r in store.configs(verdict.pipeline) if r.config == verdict.config)
    return next((running_k(record) for record in records), None)


def _configs(windows: Sequence[Window]) -> list[str]:
    return sorted({window.config for window in windows})


def traffic_object(windows: Sequence[Window]) -> dict[str, object]:
    """Return the counts and means of some windows that a person asks for first; None: not observed."""
    total = merged(windows, "", "")
    seconds = _mean(total, "retrieval_duration_seconds")
    return {
        "retrievals": total.get("retrievals"),
        "empty": total.get("empty_zero") + total.get("empty_none"),
        "short": total.get("short"),
        "errors": total.get("errors"),
        "partial": total.get("partial"),
        "passages_mean": _mean(total, "retrieved_passages"),
        "context_tokens_mean": _mean(total, "context_tokens"),
        "source_diversity_mean": _mean(total, "source_diversity_ratio"),
        "top_score_mean": _mean(total, "top_score"),
        "latency_mean_ms": None if seconds is None else round(seconds * 1000, 3),
    }


def _mean(total: Window, name: str) -> float | None:
    histogram = total.histograms.get(name)
    return round(histogram.sum / histogram.n, 4) if histogram is not None and histogram.n else None


def flags_object(flags: Sequence[Flag], acks: Sequence[Ack], now: float) -> dict[str, object]:
    """Return `resweep.flags/1`."""
    said: dict[tuple[str, float], Ack] = {(ack.key, ack.opened_ts): ack for ack in acks}
    return {
        "schema": FLAGS_SCHEMA,
        "ts": now,
        "flags": [flag_object(flag, said.get((flag.key, flag.opened_ts))) for flag in flags],
    }


def flag_object(flag: Flag, ack: Ack | None) -> dict[str, object]:
    """Return one flag, with what a person last said of it."""
    shown: dict[str, object] = msgspec.to_builtins(flag)
    told = (
        None if ack is None else {"action": ack.action, "by": ack.who, "because": ack.because, "ts": ack.ts}
    )
    return {**shown, "state": "open" if flag.cleared_ts is None else "cleared", "acknowledged": told}


def configs_object(store: SqlStore, now: float) -> dict[str, object]:
    """Return `resweep.configs/1`: every config ever seen, by pipeline, in the order first seen."""
    return {
        "schema": CONFIGS_SCHEMA,
        "ts": now,
        "pipelines": {
            name: [config_object(seen) for seen in store.configs_seen(name)] for name in store.pipelines()
        },
    }


def config_object(seen: ConfigSeen) -> dict[str, object]:
    """Return one config with its place among the others."""
    shown: dict[str, object] = msgspec.to_builtins(seen.record)
    return {
        **shown,
        "parent": seen.parent,
        "first_seen": seen.first_seen,
        "last_seen": seen.last_seen,
        "retired_at": seen.retired_at,
    }
