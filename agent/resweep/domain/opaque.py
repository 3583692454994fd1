"""What can be said of a value that has no plain form: its type's name and its declared parameters.

Only what lies in the instance is read; no property runs, so nothing is computed or fetched.
"""

from __future__ import annotations

import functools
import inspect
from types import FunctionType, MemberDescriptorType, MethodType

from resweep.domain.plain import qualified_name

MAX_TEXT = 400  # characters of a huge number that are worth keeping

_ABSENT = object()


def description(value: object) -> dict[str, object]:
    """Return `{"opaque": name, ...parameters}`, whatever the value does when it is looked at."""
    try:
        return {**_parameters(value), "opaque": qualified_name(value)}
    except Exception:  # noqa: BLE001 - a class may do anything when inspected, and a service must not stop
        return {"opaque": "unknown"}


def _parameters(value: object) -> dict[str, object]:
    if isinstance(value, functools.partial):
        return {"func": value.func, "args": value.args, **value.keywords}
    if isinstance(value, MethodType):
        return {"self": value.__self__}
    if isinstance(value, (int, float)):
        return {"value": _digits(value)}
    if isinstance(value, (type, FunctionType)):
        return {}
    found = {name: _held(value, name) for name in _declared(type(value))}
    return {name: item for name, item in found.items() if item is not _ABSENT}


def _digits(value: float) -> str:
    """Spell a number that JSON cannot hold: NaN, an infinity, or an integer beyond 2^53."""
    if isinstance(value, float):
        return str(value)
    # In hex: Python refuses to write integers of thousands of digits in decimal.
    return f"{value:x}"[:MAX_TEXT]


def _declared(kind: type) -> tuple[str, ...]:
    """Return the names of a class's fields and of its constructor's parameters."""
    names = [*_mapping_keys(kind, "model_fields"), *_mapping_keys(kind, "__dataclass_fields__")]
    try:
        parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]  # type: ignore[misc]
    except (TypeError, ValueError):
        parameters = []
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    names += [parameter.name for parameter in parameters if parameter.kind not in variadic]
    return tuple(dict.fromkeys(names))


def _mapping_keys(kind: type, attribute: str) -> list[str]:
    found = inspect.getattr_static(kind, attribute, None)
    found = found if isinstance(found, dict) else getattr(kind, attribute, None)
    return [key for key in found if isinstance(key, str)] if isinstance(found, dict) else []


def _held(value: object, name: str) -> object:
    """Return what an instance holds under a parameter's name, plain or with underscores before it."""
    inside = inspect.getattr_static(value, "__dict__", None)
    own = object.__getattribute__(value, "__dict__") if inside is not None else {}
    for spelling in (name, f"_{name}", f"_{type(value).__name__.lstrip('_')}__{name}"):
        if spelling in own:
            return own[spelling]
        slot = inspect.getattr_static(type(value), spelling, None)
        if isinstance(slot, MemberDescriptorType):
            return _slot(slot, value)
    return _ABSENT


def _slot(slot: MemberDescriptorType, value: object) -> object:
    try:
        return slot.__get__(value)
    except AttributeError:  # never set
        return _ABSENT
