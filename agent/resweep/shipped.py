"""Files that ship with resweep: rules, alerts and dashboards, in a wheel or in a checkout."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from resweep import documents
from resweep.domain.invalidation import InvalidationRules


def rules_dir() -> Traversable:
    """Return the folder of rules: `invalidation.yaml`, `alerts/`, `recording/`, `runbooks/`, `dashboards/`.

    Raises `FileNotFoundError` where they are not installed.
    """
    shipped = files("resweep") / "rules"
    if shipped.is_dir():
        return shipped
    checkout = Path(__file__).resolve().parents[2] / "rules"
    if checkout.is_dir():
        return checkout
    raise FileNotFoundError("the rules that ship with resweep were expected beside it; install it anew")


def invalidation_rules(own: Path | None = None) -> InvalidationRules:
    """Return the shipped rules, with those of a user's file before them.

    Raises `InputError` for a file that cannot be read or does not say what it must.
    """
    default = InvalidationRules.load_default()
    if own is None:
        return default
    return default.merged(InvalidationRules.from_mapping(documents.read(own), str(own)))
