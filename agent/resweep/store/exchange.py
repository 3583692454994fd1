"""Between the store and the lock file: what to carry over, and where the two disagree.

As with a repository and its remote: `pull` brings the store's records into the file, `push` the reviewed
file into the store. What stands on the receiving side alone stays there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from resweep.domain.verdict import TunedK
from resweep.store.lockentry import Key, key, values_of
from resweep.store.lockfile import LockFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """One thing that file and store say differently of the same (pipeline, basis, epoch)."""

    pipeline: str
    basis: str
    epoch: int
    name: str
    in_lock: object
    in_store: object

    def __str__(self) -> str:
        return (
            f"{self.pipeline}, basis {self.basis}, epoch {self.epoch}: {self.name} is {_said(self.in_lock)} "
            f"in the lock file and {_said(self.in_store)} in the store"
        )


def _said(value: object) -> str:
    if value is None:
        return "not stated"
    return value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulled:
    """The lock file to write, the entries that are new or changed in it, and what it said differently."""

    lock: LockFile
    changed: tuple[TunedK, ...]
    disagreements: tuple[Disagreement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed:
    """The records to put into the store (`record_all_tuned`), and what it said differently."""

    records: tuple[TunedK, ...]
    disagreements: tuple[Disagreement, ...]


def pull(lock: LockFile, stored: Iterable[TunedK]) -> Pulled:
    """Return the lock file with the store's records in it."""
    ours, theirs = _by_key(lock.entries), _by_key(stored)
    merged = {**ours, **{at: record for at, record in theirs.items() if _differs(ours.get(at), record)}}
    return Pulled(
        lock=LockFile(entries=tuple(merged[at] for at in sorted(merged)), text=lock.text),
        changed=_news(theirs, ours),
        disagreements=disagreements(lock.entries, theirs.values()),
    )


def push(lock: LockFile, stored: Iterable[TunedK]) -> Pushed:
    """Return the lock file's records that the store lacks or has differently."""
    ours, theirs = _by_key(lock.entries), _by_key(stored)
    return Pushed(records=_news(ours, theirs), disagreements=disagreements(lock.entries, theirs.values()))


def disagreements(locked: Iterable[TunedK], stored: Iterable[TunedK]) -> tuple[Disagreement, ...]:
    """Return what both sides hold and say differently, by pipeline, basis, epoch and key."""
    ours, theirs = _by_key(locked), _by_key(stored)
    return tuple(
        difference
        for at in sorted(ours.keys() & theirs.keys())
        for difference in _compare(ours[at], theirs[at])
    )


def _by_key(records: Iterable[TunedK]) -> dict[Key, TunedK]:
    return {key(record): record for record in records}


def _news(source: dict[Key, TunedK], target: dict[Key, TunedK]) -> tuple[TunedK, ...]:
    return tuple(source[at] for at in sorted(source) if _differs(target.get(at), source[at]))


def _differs(one: TunedK | None, other: TunedK) -> bool:
    return one is None or values_of(one) != values_of(other)


def _compare(locked: TunedK, stored: TunedK) -> Iterable[Disagreement]:
    ours, theirs = values_of(locked), values_of(stored)
    for name in dict.fromkeys((*ours, *theirs)):
        if ours.get(name) != theirs.get(name):
            yield Disagreement(
                pipeline=locked.pipeline,
                basis=locked.basis,
                epoch=locked.epoch,
                name=name,
                in_lock=ours.get(name),
                in_store=theirs.get(name),
            )
