"""Accepting a depth: what a person may say of a pipeline, and the record it becomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec

from resweep.domain.batch import ConfigRecord
from resweep.domain.errors import InputError, UsageError
from resweep.domain.fingerprint import depths, fingerprint
from resweep.domain.invalidation import InvalidationRules
from resweep.domain.verdict import TunedK, Verdict
from resweep.schedule.canaries import facts_now
from resweep.store.names import label, unseen
from resweep.store.sql import SqlStore

K_MAX = 10_000


Words = Annotated[str, msgspec.Meta(max_length=2000)]  # what a person may say in one go


class Swept(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a sweep found, beside the depth: fields of the record of a tuned depth.

    `basis` is the one it was measured for, None where it was not said; `parts` the config by its parts.
    """

    basis: str | None = None
    parts: dict[str, Any] | None = None
    best_set: tuple[int, ...] = ()
    objective: str | None = None
    constraints: dict[str, Any] = {}
    labelled_set: dict[str, Any] = {}
    grid: dict[str, Any] = {}
    slices: dict[str, Any] = {}
    weak_cases: tuple[str, ...] = ()
    report: str | None = None
    judge: dict[str, Any] = {}


class Acceptance(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What is accepted: a depth for a pipeline's config in charge, or for the `config` that is given.

    `document` is a config by its parts, which the agent need not have seen. `until` is ISO 8601 or unix
    seconds. Without `context_k` the depth is the one the config runs with. `swept` says what a sweep found.
    """

    pipeline: str
    context_k: int | None = None
    candidate_k: int | None = None
    config: str | None = None
    document: dict[str, Any] | None = None
    provisional: bool = False
    because: Words = ""
    until: str | float | None = None
    by: Words = ""
    swept: Swept | None = None


def accepted(
    wish: Acceptance,
    store: SqlStore,
    now: float,
    rules: InvalidationRules,
    verdicts: Sequence[Verdict] = (),
) -> TunedK:
    """Return the record of an acceptance at `now` (unix s), without writing it.

    `verdicts` are the judge's: the first of a pipeline is that of its config in charge. Raises UsageError for
    a pipeline or config nobody has seen, and where no depth is known; ConfigError for a `document` without an
    identity.
    """
    record = _record(wish, store, rules, verdicts)
    swept = wish.swept or Swept()
    known = [t for t in store.tuned(wish.pipeline) if t.basis == record.basis]
    facts = facts_now(store, record, now)
    return TunedK(
        pipeline=label(wish.pipeline),
        basis=record.basis,
        context_k=_depth("context_k", wish.context_k, record, known, running_k(record)),
        candidate_k=_candidates(wish, record),
        epoch=_epoch(known, record, store, facts),
        parts=record.document,
        observed=facts,
        tuned_at=now,
        tuned_by=wish.by,
        because=wish.because,
        valid_until=until(wish.until, now),
        provisional=wish.provisional,
        best_set=swept.best_set,
        objective=swept.objective,
        constraints=swept.constraints,
        labelled_set=swept.labelled_set,
        grid=swept.grid,
        slices=swept.slices,
        weak_cases=swept.weak_cases,
        report=swept.report,
        judge=swept.judge,
    )


def _record(
    wish: Acceptance, store: SqlStore, rules: InvalidationRules, verdicts: Sequence[Verdict]
) -> ConfigRecord:
    """Return the config meant: that described, that which was swept, or the one in charge."""
    swept = wish.swept or Swept()
    basis, configs = swept.basis, store.configs(wish.pipeline)
    seen = [config for config in configs if config.basis == basis]
    if wish.document is not None:
        record = _described(wish, wish.document, rules)
    elif seen:
        record = seen[-1]
    elif swept.parts and not configs:  # swept before it was ever deployed
        record = _described(wish, swept.parts, rules)
    else:
        record = config_meant(wish, store, verdicts)
    if basis not in (None, record.basis):
        raise UsageError(
            f"the report was measured for basis {basis}, and {wish.pipeline} runs basis {record.basis}: "
            "sweep what runs (--config names its file), or name the config that was swept"
        )
    return record


def _described(wish: Acceptance, document: Mapping[str, Any], rules: InvalidationRules) -> ConfigRecord:
    known = fingerprint(document, rules=rules)
    return ConfigRecord(
        pipeline=label(wish.pipeline),
        config=known.config_hash,
        basis=known.basis_hash,
        document=known.document,
        digest=known.document_digest,
    )


def config_meant(wish: Acceptance, store: SqlStore, verdicts: Sequence[Verdict]) -> ConfigRecord:
    """Return the config that an acceptance is about. Raises UsageError where there is none such."""
    configs = store.configs(wish.pipeline)
    if not configs:
        raise UsageError(unseen(wish.pipeline, store.pipelines()))
    if wish.config is not None:
        found = [c for c in configs if c.config.startswith(wish.config[:12]) or c.basis == wish.config]
        if not found:
            names = ", ".join(c.config for c in configs)
            raise UsageError(f"{wish.pipeline} has no config {wish.config!r}; it has {names}")
        return found[-1]
    in_charge = next((v.config for v in verdicts if v.pipeline == label(wish.pipeline)), None)
    return next((c for c in configs if c.config == in_charge), configs[-1])


def running_k(record: ConfigRecord) -> int | None:
    """Return the context depth of a config: declared, read from the live object, or the framework's own."""
    for k in (depths(record.document)[0], record.observed.get("k"), record.default_k):
        if isinstance(k, int) and not isinstance(k, bool):
            return k
    return None


def _depth(
    what: str, wished: int | None, record: ConfigRecord, known: Sequence[TunedK], running: int | None
) -> int:
    if wished is not None:
        if not 1 <= wished <= K_MAX:
            raise UsageError(f"{what}: expected 1 to {K_MAX}; got {wished}")
        return wished
    if running is not None:
        return running
    if known:
        return known[-1].context_k
    raise UsageError(f"config {record.config} of {record.pipeline} does not say its {what}: state it (--k N)")


def _candidates(wish: Acceptance, record: ConfigRecord) -> int | None:
    if wish.candidate_k is not None:
        least = wish.context_k or 1
        if not least <= wish.candidate_k <= K_MAX:
            told = f"candidate_k: expected {least} to {K_MAX}; got {wish.candidate_k}"
            raise UsageError(told + (": what reaches the prompt is chosen from the candidates" * (least > 1)))
        return wish.candidate_k
    declared, candidate_k = depths(record.document)
    if wish.swept and candidate_k and wish.context_k and candidate_k in (declared, *range(wish.context_k)):
        return None  # the context depth by another name, or too small for the new one
    return candidate_k


def _epoch(
    known: Sequence[TunedK], record: ConfigRecord, store: SqlStore, facts: Mapping[str, object]
) -> int:
    """Return the epoch: an earlier one whose embedder runs again, a new one after a silent change."""
    last = max((t.epoch for t in known), default=0)
    same = [e for e in store.epochs() if (e.pipeline, e.basis) == (label(record.pipeline), record.basis)]
    silent = [f for f in store.flags(record.pipeline) if f.reason in _SILENT and f.basis == record.basis]
    digest = facts.get("canary_digest")
    again = [e.epoch for e in same if e.digest == digest and e.epoch <= last]
    if again and all(flag.key.endswith(":embedder") for flag in silent):
        return max(again)
    other = digest is not None and any(e.epoch == last and e.digest != digest for e in same)
    return last + 1 if silent or other or not last else last


_SILENT = ("silent_change", "dimension_mismatch")


def until(given: str | float | None, now: float) -> float | None:
    """Return a moment to come in unix seconds, from ISO 8601 (UTC where no zone is given) or unix seconds."""
    if given is None or given == "":
        return None
    try:
        when = float(given)
    except ValueError:
        when = _from_iso(str(given))
    if not now < when < 1e11:
        raise UsageError(f"until: expected a moment to come, as 2027-01-31; got {given!r}")
    return when


def _from_iso(given: str) -> float:
    try:
        when = datetime.fromisoformat(given)
    except ValueError:
        raise UsageError(f"until: expected a date, as 2027-01-31; got {given!r}") from None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def acceptance(raw: object) -> Acceptance:
    """Return the acceptance in a decoded JSON body. Raises InputError where it is none."""
    try:
        return msgspec.convert(raw, Acceptance)
    except msgspec.ValidationError as error:
        raise InputError(f"expected an acceptance with `pipeline`; {error}") from None


def records(raw: object) -> list[TunedK]:
    """Return the records of tuned depths in a decoded JSON body. Raises InputError where it holds none."""
    try:
        given = msgspec.convert(raw, dict[str, list[TunedK]])["tuned"]
    except (msgspec.ValidationError, KeyError) as error:
        raise InputError(f'expected {{"tuned": […]}}; {error}') from None
    for record in given:
        if not 1 <= record.context_k <= K_MAX or not record.pipeline or not record.basis:
            raise InputError(f"expected a pipeline, a basis and a depth of 1 to {K_MAX}; got {record!r:.200}")
    return given


def tuned_object(tuned: TunedK) -> Mapping[str, object]:
    """Return a record of a tuned depth as JSON."""
    plain: Mapping[str, object] = msgspec.to_builtins(tuned)
    return plain
