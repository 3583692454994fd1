"""Documents from a file: YAML, TOML and JSON, bounded, and strict where a slip would pass for a meaning."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from resweep.domain.errors import InputError

if TYPE_CHECKING:
    import yaml

LARGEST = 4_000_000  # bytes of a document that a person keeps


def read(path: Path | Traversable) -> object:
    """Return what a document holds, by its suffix: `.toml`, `.json`, else YAML; in plain data only.

    Raises InputError for one that cannot be read, is larger than 4 MB, or holds a key twice.
    """
    suffix = Path(path.name).suffix.lower()
    kind = {".toml": "TOML", ".json": "JSON"}.get(suffix, "YAML")
    body = read_bytes(path)
    try:
        if kind == "YAML":
            return _yaml(body)
        text = body.decode("utf-8-sig")
        return tomllib.loads(text) if kind == "TOML" else json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        told = " ".join(str(error).split())
        raise InputError(f"{path}: {kind} was expected; got {told}: mend the file") from None


def read_bytes(path: Path | Traversable, largest: int = LARGEST) -> bytes:
    """Return the bytes of a file or pipe. Raises InputError for more than `largest`, or none readable."""
    try:
        with path.open("rb") as stream:
            body: bytes = stream.read(largest + 1)
    except (OSError, ValueError) as error:  # a ValueError for a name that no file can have
        why = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot be read: {why}: check the path") from None
    if len(body) > largest:
        raise InputError(f"{path}: at most {largest} bytes were expected, and there are more")
    return body


def _once(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON. Raises ValueError where a key stands twice."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} twice in one object")
        found[key] = value
    return found


def _yaml(body: bytes) -> object:
    import yaml  # a service that only records never needs it

    try:
        return yaml.load(body, Loader=_strict_loader())  # noqa: S506  (a SafeLoader)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


@cache
def _strict_loader() -> type[yaml.SafeLoader]:
    """Return a safe loader that refuses a key which stands twice in one mapping."""
    import yaml

    class Strict(yaml.SafeLoader):
        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            seen: list[object] = []
            for key_node, _ in node.value:
                if key_node.tag == "tag:yaml.org,2002:merge":
                    continue  # what is merged in gives way to the mapping's own keys
                key: object = self.construct_object(key_node, deep=True)
                if key in seen:
                    at = key_node.start_mark.line + 1
                    raise yaml.YAMLError(f"the key {key!r} twice in one mapping (again on line {at})")
                seen.append(key)
            return super().construct_mapping(node, deep)

    return Strict
