"""The identity of a config: what a tuned k is kept beside.

    config_hash   identity of the config without inert paths; a label on every metric
    basis_hash    the same without candidate_k and context_k; what a tuned k is valid for

The document (canonical, secrets left out, inert paths included) is what is stored. Hashes follow from it and
the rules alone, so a stored document fingerprinted again under later rules says whether a hash that differs
means another config or other rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256

from resweep.domain.basis import ABSENT, IN_BASIS, IN_CONFIG, kept
from resweep.domain.canonical import Plain, jcs
from resweep.domain.depth import depths
from resweep.domain.document import read
from resweep.domain.event import CONFIG_ID_LENGTH
from resweep.domain.invalidation import Effect, InvalidationRules, PathEffect

__all__ = ["SCHEME", "Fingerprint", "InvalidationRules", "PathEffect", "depths", "fingerprint"]

SCHEME = "resweep.config/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """The identity of one config.

    `config_hash` and `basis_hash` are the first 12 hex digits of `config_digest` and `basis_digest` (64 hex
    digits, SHA-256). `document` is canonical plain data without secrets, `document_digest` its own digest.
    `omitted` lists the paths where secrets were left out, `opaque` those that have no stable identity;
    `complete` is False where there are any of the latter: the hash then cannot see every change.
    """

    scheme: str
    config_hash: str
    basis_hash: str
    config_digest: str
    basis_digest: str
    document: Mapping[str, Plain]
    document_digest: str
    omitted: tuple[str, ...]
    opaque: tuple[str, ...]
    complete: bool


def fingerprint(
    config: object,
    *,
    rules: InvalidationRules | None = None,
    strict: bool = True,
    secret_paths: Iterable[str] = (),
) -> Fingerprint:
    """Return the identity of a config: equal for equal content on every platform, Python and process.

    `secret_paths` are patterns of further paths to leave out. With `strict`, raises `UnstableValueError`
    (a `ConfigError`) with the path of what has no stable identity; without, never raises for a config: it
    describes such a value by its class and declared parameters, and lists it as opaque.

    >>> one = fingerprint({"embedder": {"model": "m1"}, "context_k": 8, "api_key": "sk-test-AAAA1111"})
    >>> two = fingerprint({"context_k": 10.0, "embedder": {"model": "m1"}})
    >>> one.config_hash == two.config_hash, one.basis_hash == two.basis_hash, one.omitted
    (False, True, ('api_key',))
    """
    rules = rules or InvalidationRules.load_default()
    document = read(config, strict=strict, secret_paths=secret_paths)
    config_digest = _digest("config", _counting(document.data, rules, IN_CONFIG))
    basis_digest = _digest("basis", _counting(document.data, rules, IN_BASIS))
    return Fingerprint(
        scheme=SCHEME,
        config_hash=config_digest[:CONFIG_ID_LENGTH],
        basis_hash=basis_digest[:CONFIG_ID_LENGTH],
        config_digest=config_digest,
        basis_digest=basis_digest,
        document=document.data,
        document_digest=_digest("document", document.data),
        omitted=document.omitted,
        opaque=document.opaque,
        complete=not document.opaque,
    )


def _counting(data: dict[str, Plain], rules: InvalidationRules, counts: frozenset[Effect]) -> Plain:
    found = kept(data, (), rules, counts)
    return {} if found is ABSENT else found


def _digest(kind: str, data: Plain) -> str:
    """Return the hex digest of the scheme, what is digested, and its canonical bytes."""
    return sha256(jcs({"scheme": SCHEME, kind: data})).hexdigest()
