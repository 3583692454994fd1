"""A config read into its canonical document: plain data, secrets left out, what has no identity named.

Strict reading refuses what has no stable identity, with its path. Lenient reading never raises: it puts a
description in its place and lists the path as opaque. Where strict reading succeeds, lenient reading gives
the same document and lists nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from resweep.domain import paths
from resweep.domain.canonical import MAX_INTEGER, Plain, jcs, nfc, number, sorted_keys
from resweep.domain.errors import ConfigError, UnstableValueError
from resweep.domain.opaque import description
from resweep.domain.paths import ANYWHERE, Path, Patterns
from resweep.domain.plain import (
    MAX_VALUES,
    PLAIN_TYPES,
    NoIdentityError,
    fields,
    is_record,
    is_secret_holder,
    qualified_name,
    simpler,
)
from resweep.domain.scrub import scrub
from resweep.domain.secrets import MASK, NAME_KEYS, VALUE_KEYS, hides, names_a_secret

MAX_DEPTH = 64  # levels of nesting
MAX_OPAQUE_DEPTH = 3  # objects within objects whose parameters are still read
OPAQUE = "opaque"

# How Python prints an object that has no text of its own.
_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]{4,}")


class _Omitted:
    """Stands for a value that was nothing but a secret."""


_OMITTED = _Omitted()


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A config as plain data. `omitted` and `opaque` are written paths, sorted."""

    data: dict[str, Plain]
    omitted: tuple[str, ...]
    opaque: tuple[str, ...]


def read(config: object, *, strict: bool = True, secret_paths: Iterable[str] = ()) -> Document:
    """Read a config into its canonical document.

    Raises `UnstableValueError`, in strict reading, for what has no stable identity, and `ConfigError` for a
    bad pattern in `secret_paths`.
    """
    reader = _Reader(strict, _patterns(secret_paths))
    data = reader.root(config)
    return Document(data=data, omitted=tuple(sorted(reader.omitted)), opaque=tuple(sorted(reader.opaque)))


def _patterns(secret_paths: Iterable[str]) -> Patterns:
    try:
        return Patterns(secret_paths)
    except ValueError as error:
        raise ConfigError(f"secret_paths: {error}") from None


class _Reader:
    """One reading of one config."""

    def __init__(self, strict: bool, hidden: Patterns) -> None:
        self.omitted: set[str] = set()
        self.opaque: set[str] = set()
        self._strict = strict
        self._hidden = hidden
        self._open: set[int] = set()  # what is being read: meeting it again is a cycle
        self._left = MAX_VALUES
        self._within_opaque = 0

    def root(self, config: object) -> dict[str, Plain]:
        data = self._read_guarded(config, ())
        if isinstance(data, dict):
            return data
        if self._strict:
            raise UnstableValueError("", f"a mapping of parts was expected, {qualified_name(config)} came")
        self.opaque.add("config")
        return {OPAQUE: qualified_name(config), **({} if isinstance(data, _Omitted) else {"value": data})}

    def _read_guarded(self, value: object, path: Path) -> Plain | _Omitted:
        try:
            if self._is_secret(value, path):
                return self._omit(path)
            return self._read(value, path)
        except UnstableValueError:
            raise
        except NoIdentityError as error:
            why = str(error)
        except Exception as error:  # noqa: BLE001 - a config may hold objects that raise whatever they like
            why = f"reading it raised {type(error).__name__}; give its name and parameters as data"
        if self._strict:
            raise UnstableValueError(paths.text(path), why) from None
        return self._described(value, path)

    def _is_secret(self, value: object, path: Path) -> bool:
        if not path or value is None:
            return False
        return (isinstance(path[-1], str) and hides(path[-1], value)) or (
            bool(self._hidden) and path in self._hidden
        )

    def _omit(self, path: Path) -> _Omitted:
        self.omitted.add(paths.text(path))
        return _OMITTED

    def _read(self, value: object, path: Path) -> Plain | _Omitted:
        kind = type(value)
        if kind is str:
            return self._text(str(value), path)
        if value is None or isinstance(value, bool):
            return value
        if kind is int or kind is float:
            return _finite(value)  # type: ignore[arg-type]
        if kind not in PLAIN_TYPES and is_secret_holder(value):
            return self._omit(path)
        return self._opened(value, path)

    def _opened(self, value: object, path: Path) -> Plain | _Omitted:
        if len(path) >= MAX_DEPTH:
            raise NoIdentityError(f"nested deeper than {MAX_DEPTH} levels; a config is flatter")
        if id(value) in self._open:
            raise NoIdentityError("it contains itself; give its name and parameters as data")
        self._open.add(id(value))
        try:
            return self._container(value, path)
        finally:
            self._open.discard(id(value))

    def _container(self, value: object, path: Path) -> Plain | _Omitted:
        if isinstance(value, (dict, list, tuple, set, frozenset)) and type(value) in PLAIN_TYPES:
            self._spend(len(value))
            if isinstance(value, dict):
                return self._mapping(value, path)
            return self._list(value, path) if isinstance(value, (list, tuple)) else self._set(value, path)
        return self._record(value, path) if is_record(value) else self._read(simpler(value), path)

    def _spend(self, values: int) -> None:
        self._left -= values
        if self._left < 0:
            raise NoIdentityError(
                f"more than {MAX_VALUES} values are data and no config; give a digest of them"
            )

    def _record(self, value: object, path: Path) -> Plain:
        """Read an object's fields; where one of them is opaque, what class it is counts too."""
        before = len(self.opaque)
        found = self._mapping(fields(value), path)
        if len(self.opaque) == before:
            return found
        self.opaque.add(paths.text(path) or "config")
        return {**found, OPAQUE: qualified_name(value)}

    def _mapping(self, items: dict[object, object] | dict[str, object], path: Path) -> dict[str, Plain]:
        found: dict[str, Plain] = {}
        alike: dict[str, list[Plain]] = {}
        holds_value = _holds_a_secret_value(items, path)
        for key, item in items.items():
            if item is None:  # null equals absent
                continue
            name = self._key(key, path)
            here = (*path, name)
            secret = holds_value and name.lower() in VALUE_KEYS and isinstance(item, str)
            result = self._omit(here) if secret else self._read_guarded(item, here)
            if result is None or isinstance(result, _Omitted):
                continue
            if name in found:
                self._note_clash(name, here)
                alike.setdefault(name, [found[name]]).append(result)
            found[name] = result
        found.update({name: sorted(values, key=jcs) for name, values in alike.items()})
        return {name: found[name] for name in sorted_keys(found)}

    def _note_clash(self, name: str, path: Path) -> None:
        """Two keys that became one text: keys that were secrets may, others have no identity."""
        if MASK not in name:
            self._refuse(path, f"two keys become the same text, {name!r}; rename one")

    def _refuse(self, path: Path, why: str) -> None:
        if self._strict:
            raise UnstableValueError(paths.text(path), why)
        self.opaque.add(paths.text(path) or "config")

    def _key(self, key: object, path: Path) -> str:
        """Bring a key to text as JSON would: numbers in digits, booleans as words."""
        plain = key if type(key) is str else self._plain_key(key, path)
        text = self._sound(plain, path)
        clean = scrub(text)
        if clean != text:
            clean = MASK if clean is None else clean
            self._omit((*path, clean))
        return clean or text

    def _plain_key(self, key: object, path: Path) -> str:
        try:
            plain = key if type(key) in PLAIN_TYPES else simpler(key)
        except NoIdentityError:
            plain = None
        if isinstance(plain, bool):
            return "true" if plain else "false"
        if isinstance(plain, int):
            return str(plain)
        if isinstance(plain, str) or (isinstance(plain, float) and math.isfinite(plain)):
            return plain if isinstance(plain, str) else number(plain)
        self._refuse(path, f"a key is text or a number, {qualified_name(key)} came; write it as text")
        return f"{OPAQUE}:{qualified_name(key)}"

    def _list(self, items: list[object] | tuple[object, ...], path: Path) -> list[Plain]:
        # A pair within a list, as headers are often given: ["Authorization", "..."].
        pair = bool(path) and isinstance(path[-1], int) and len(items) == 2 and names_a_secret(items[0])
        found: list[Plain] = []
        for place, item in enumerate(items):
            here = (*path, place)
            named = (pair and place == 1) or (place > 0 and _is_secret_option(items[place - 1]))
            secret = named and isinstance(item, str) and item != MASK
            result = self._omit(here) if secret else self._read_guarded(item, here)
            found.append(MASK if isinstance(result, _Omitted) else result)
        return found

    def _set(self, members: set[object] | frozenset[object], path: Path) -> list[Plain]:
        """Read a set as the list that sorting it gives, so that it equals what a file would hold."""
        here = (*path, ANYWHERE)
        results = (self._read_guarded(member, here) for member in members)
        plain: list[Plain] = [MASK if isinstance(result, _Omitted) else result for result in results]
        return sorted({jcs(member): member for member in plain}.values(), key=_rank)

    def _text(self, value: str, path: Path) -> str | _Omitted:
        text = self._sound(value, path)
        last = path[-1] if path else ""
        clean = scrub(text, last if isinstance(last, str) else "")
        if clean is None:
            return self._omit(path)
        if clean != text:
            self._omit(path)
        return clean

    def _sound(self, value: str, path: Path) -> str:
        """Return text in NFC, with no memory address and no half surrogate in it."""
        if " at 0x" in value and _ADDRESS.search(value):
            self._refuse(path, "text holds a memory address, new in each process; give a name and parameters")
            value = _ADDRESS.sub("", value)
        if value.isascii():
            return value
        try:
            value.encode()
        except UnicodeEncodeError:
            self._refuse(path, "text holds half of a surrogate pair; decode it rightly")
            value = value.encode("utf-8", "backslashreplace").decode()
        return nfc(value)

    def _described(self, value: object, path: Path) -> Plain:
        self.opaque.add(paths.text(path) or "config")
        facts = description(value)
        name = {OPAQUE: str(facts[OPAQUE])}
        if len(facts) == 1 or id(value) in self._open or self._within_opaque >= MAX_OPAQUE_DEPTH:
            return dict(name)
        self._open.add(id(value))
        self._within_opaque += 1
        try:
            return {**self._mapping(facts, path), **name}
        except Exception:  # noqa: BLE001 - whatever its parameters do, its name stands
            return dict(name)
        finally:
            self._within_opaque -= 1
            self._open.discard(id(value))


def _finite(value: float) -> float:
    """Return a number as JSON holds it: whole numbers as integers, no -0."""
    if isinstance(value, int):
        if abs(value) > MAX_INTEGER:
            raise NoIdentityError("an integer beyond 2^53 has no number of its own in JSON; write it as text")
        return value
    if not math.isfinite(value):
        raise NoIdentityError("a finite number was expected, NaN or an infinity came")
    return int(value) if value.is_integer() and abs(value) <= MAX_INTEGER else value


def _rank(member: Plain) -> tuple[int, float | str | bytes]:
    """Sort numbers by size, then text by code point, then the rest by canonical bytes."""
    if isinstance(member, (int, float)) and not isinstance(member, bool):
        return 0, member
    return (1, member) if isinstance(member, str) else (2, jcs(member))


def _is_secret_option(before: object) -> bool:
    return isinstance(before, str) and before.startswith("-") and names_a_secret(before)


def _holds_a_secret_value(items: dict[object, object] | dict[str, object], path: Path) -> bool:
    """Say whether a mapping names a credential beside its value, as `{"name": "api_key", "value": ...}`."""
    if path and names_a_secret(path[-1]):
        return True
    return any(names_a_secret(item) for key, item in items.items() if key in NAME_KEYS)
