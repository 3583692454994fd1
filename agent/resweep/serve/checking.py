"""Is the tuned k of a config file still valid? Answered by the lock file alone, as a build does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from resweep import documents
from resweep.domain.diff import Change, diff, in_words
from resweep.domain.errors import InputError
from resweep.domain.fingerprint import Fingerprint, depths, fingerprint
from resweep.domain.invalidation import InvalidationRules
from resweep.domain.verdict import TunedK, VerdictState
from resweep.store.lockfile import LockFile

CHECK_SCHEMA = "resweep.check/1"


class Described(NamedTuple):
    """A config file: the pipeline's name and its config."""

    pipeline: str
    config: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What a check found. `nearest` is the record that `changed` is told against."""

    pipeline: str
    found: Fingerprint
    state: VerdictState
    why: str
    tuned: TunedK | None
    nearest: TunedK | None
    changed: Sequence[Change]

    def to_json(self) -> dict[str, object]:
        """Return the `resweep.check/1` object."""
        return {
            "schema": CHECK_SCHEMA,
            "pipeline": self.pipeline,
            "config_hash": self.found.config_hash,
            "basis_hash": self.found.basis_hash,
            "state": self.state,
            "why": self.why,
            "tuned": None if self.tuned is None else _tuned(self.tuned),
            "omitted": list(self.found.omitted),
            "changed": [_changed(change) for change in self.changed],
        }


def _tuned(record: TunedK) -> dict[str, object]:
    return {
        "context_k": record.context_k,
        "candidate_k": record.candidate_k,
        "epoch": record.epoch,
        "best_set": list(record.best_set),
        "objective": record.objective,
        "report": record.report,
        "tuned_at": record.tuned_at,
        "tuned_by": record.tuned_by,
        "because": record.because,
        "valid_until": record.valid_until,
        "provisional": record.provisional,
    }


def _changed(change: Change) -> dict[str, object]:
    return {
        "path": change.path,
        "from": change.before,
        "to": change.after,
        "effect": change.effect,
        "component": change.component,
        "peak": change.peak,
        "because": change.because,
    }


def read_config(path: Path) -> Described:
    """Return what a YAML, TOML or JSON file describes. Raises InputError."""
    data = documents.read(path)
    if not isinstance(data, dict):
        raise InputError(
            f"{path}: expected a mapping with `pipeline` and `config`; got {type(data).__name__}"
        )
    pipeline, config = data.get("pipeline"), data.get("config")
    if not isinstance(pipeline, str) or not pipeline:
        raise InputError(f"{path}: expected `pipeline`, a name; got {pipeline!r:.60}: add it at the top")
    if not isinstance(config, dict):
        raise InputError(
            f"{path}: expected `config`, a mapping of parts; got {config!r:.60}: see `resweep init`"
        )
    for name in ("context_k", "candidate_k"):
        depth = config.get(name)
        if depth is not None and (not isinstance(depth, int) or isinstance(depth, bool) or depth < 1):
            raise InputError(f"{path}: expected `config.{name}`, a whole number from 1 on; got {depth!r:.60}")
    return Described(pipeline, config)


def check(described: Described, lock: LockFile, rules: InvalidationRules, now: float) -> Checked:
    """Return whether the lock file's tuned k holds for a config at `now` (unix s).

    Raises ConfigError for a config without an identity.
    """
    found = fingerprint(described.config, rules=rules)
    mine = [entry for entry in lock.entries if entry.pipeline == described.pipeline]
    tuned = lock.tuned(described.pipeline, found.basis_hash)
    nearest, changed = _nearest(found, [tuned] if tuned else mine, rules)
    state, why = _state(described.pipeline, found, tuned, mine, changed, now)
    return Checked(
        pipeline=described.pipeline,
        found=found,
        state=state,
        why=why,
        tuned=tuned,
        nearest=nearest,
        changed=changed,
    )


def _nearest(
    found: Fingerprint, entries: Sequence[TunedK], rules: InvalidationRules
) -> tuple[TunedK | None, Sequence[Change]]:
    """Return the record whose config differs least, the newest of equals, and how it differs."""
    told = [(entry, _differences(entry, found, rules)) for entry in entries]
    if not told:
        return None, ()
    return min(told, key=lambda pair: (_weight(pair[1]), -pair[0].tuned_at))


def _differences(entry: TunedK, found: Fingerprint, rules: InvalidationRules) -> Sequence[Change]:
    """Return the differences; none where the record does not hold its config."""
    if not entry.parts:
        return ()
    parts: Any = entry.parts
    return diff(parts, found.document, rules)


def _weight(changes: Sequence[Change]) -> int:
    return sum(change.effect != "inert" for change in changes)


def _state(
    pipeline: str,
    found: Fingerprint,
    tuned: TunedK | None,
    mine: Sequence[TunedK],
    changed: Sequence[Change],
    now: float,
) -> tuple[VerdictState, str]:
    if tuned is None and not mine:
        return "untuned", f"{pipeline} has no tuned k in the lock file: run the sweep, or accept the k in use"
    if tuned is None:
        words = in_words([c for c in changed if c.effect != "inert"]) if changed else "the config changed"
        return "expired", f"the tuned k of {pipeline} has expired: {words}; run the sweep"
    if tuned.valid_until is not None and now > tuned.valid_until:
        return "expired", f"the tuned k of {pipeline} is past the date it was accepted for; run the sweep"
    differs = _depths_that_differ(found, tuned)
    if differs:
        return "suspect", f"{pipeline} does not run at its tuned depth: {' and '.join(differs)}"
    silent = depths(found.document)[0] is None
    unsaid = "; it declares no context_k, so whether it runs at that depth is not known" * silent
    return "valid", f"k = {tuned.context_k} was tuned for this config{unsaid}"


def _depths_that_differ(found: Fingerprint, tuned: TunedK) -> list[str]:
    context_k, candidate_k = depths(found.document)
    pairs = (
        ("context_k", context_k, tuned.context_k),
        ("candidate_k", candidate_k, tuned.candidate_k),
    )
    return [
        f"{name} is {live}, tuned was {best}"
        for name, live, best in pairs
        if live is not None and best is not None and live != best
    ]
