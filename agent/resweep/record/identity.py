"""The config of a watched retriever: as declared, else as the live object shows it."""

from __future__ import annotations

import logging
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

from resweep.domain.batch import ConfigRecord
from resweep.domain.errors import InputError
from resweep.domain.fingerprint import depths, fingerprint
from resweep.domain.invalidation import InvalidationRules
from resweep.record.adapters.base import Facts

NO_IDENTITY = "0" * 12
_log = logging.getLogger("resweep")
_told: set[str] = set()


@lru_cache(maxsize=8)
def rules_of(file: str | None) -> InvalidationRules | None:
    """Return the rules that decide what counts, None for the shipped ones; a file that is none is told of."""
    if file is None:
        return None
    from resweep.shipped import invalidation_rules

    try:
        return invalidation_rules(Path(file))
    except InputError as error:
        _log.warning("%s; going on with the shipped rules", error)
        return None


def config_of(
    obj: Any, pipeline: str, config: object, facts: Facts, rules: InvalidationRules | None = None
) -> ConfigRecord:
    """Return the record of a config; one that has no identity is told about once and shares `NO_IDENTITY`."""
    if config is None:
        config = introspected(obj, facts)
        _tell_once(
            pipeline, "%s: no config was given to watch(); its identity is what the retriever shows", pipeline
        )
    observed, now = dict(facts.observed), time.time()
    try:
        found = fingerprint(config, rules=rules, strict=False)
    except Exception as error:  # noqa: BLE001 - a config must not stop a service
        _tell_once(pipeline, "%s: the config has no identity (%s)", pipeline, type(error).__name__)
        return ConfigRecord(
            pipeline=pipeline,
            config=NO_IDENTITY,
            basis=NO_IDENTITY,
            document={},
            complete=False,
            observed=observed,
            default_k=facts.default_k,
            first_ts=now,
        )
    if not found.complete:
        _tell_once(
            f"{pipeline}/{found.config_hash}",
            "%s: parts of the config have no stable identity, a change in them is not seen: %s",
            pipeline,
            ", ".join(found.opaque),
        )
    return ConfigRecord(
        pipeline=pipeline,
        config=found.config_hash,
        basis=found.basis_hash,
        document=found.document,
        digest=found.document_digest,
        omitted=found.omitted,
        opaque=found.opaque,
        complete=found.complete,
        observed=observed,
        default_k=facts.default_k,
        first_ts=now,
    )


def declared_depth(record: ConfigRecord) -> int | None:
    """Return the context depth that a config declares."""
    try:
        return depths(record.document)[0]
    except Exception:  # noqa: BLE001 - a document that has no depths declares none
        return None


def introspected(obj: Any, facts: Facts) -> dict[str, object]:
    """Return a config out of what the live object says of itself."""
    seen = facts.observed
    kind = obj if hasattr(obj, "__qualname__") else type(obj)
    config: dict[str, object] = {
        "retriever": {"type": f"{kind.__module__}.{kind.__qualname__}", "framework": seen.get("framework")},
        "embedder": {"model": seen.get("model"), "dimensions": seen.get("dimensions")},
        "index": {"collection": seen.get("collection"), "metric": seen.get("metric")},
        "context_k": facts.asked,
        "candidate_k": facts.candidate_k,
    }
    return config


def _tell_once(key: str, message: str, *args: object) -> None:
    if (key + message) not in _told and len(_told) < 10_000:
        _told.add(key + message)
        _log.warning(message, *args)
