"""Lenient reading: what `watch` does with a config that holds live objects. It never raises."""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pydantic
import pytest

from resweep.domain.errors import UnstableValueError
from resweep.domain.fingerprint import Fingerprint, fingerprint


def lenient(value: object) -> Fingerprint:
    """Return the fingerprint of a config with one value in it."""
    return fingerprint({"x": value, "k": 5}, strict=False)


class Embedder:
    def __init__(self, model: str, dim: int = 384, *, client: object = None, **_: object) -> None:
        self.model = model
        self._dim = dim
        self.__client = client
        self.calls = 0


class Slotted:
    __slots__ = ("dim", "model")

    def __init__(self, model: str, dim: int) -> None:
        self.model = model


class Property:
    def __init__(self, dim: int) -> None:
        self._kept = dim

    @property
    def dim(self) -> int:
        raise AssertionError("a property was run")


class Splitter(pydantic.BaseModel):
    size: int
    client: Any = None

    def split_text(self, text: str) -> list[str]:
        return [text]


@dataclass
class Settings:
    model: str
    client: object


class Hostile:
    __class__ = property(lambda self: 1 / 0)

    def __getattr__(self, name: str) -> object:
        raise RuntimeError(name)

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        raise RuntimeError


class Endless(Mapping[str, int]):
    def __getitem__(self, key: str) -> int:
        return 1

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[str]:
        number = 0
        while True:
            yield str(number)
            number += 1


class Dumper:
    def model_dump(self) -> dict[str, object]:
        raise RuntimeError("no")


class Itself:
    def __init__(self, parent: object) -> None:
        self.parent = self


def test_an_object_is_its_class_and_declared_parameters() -> None:
    """Parameters of the constructor, as the instance holds them; a counter is none."""
    assert lenient(Embedder("m1")).document["x"] == {
        "opaque": f"{__name__}.Embedder",
        "model": "m1",
        "dim": 384,
    }


def test_another_parameter_is_another_identity() -> None:
    """The same class with other vectors, or another class with the same parameters, is seen."""
    small, large = lenient(Embedder("m1", 384)), lenient(Embedder("m1", 768))
    assert small.basis_hash != large.basis_hash
    assert lenient(Settings("m1", object())).config_hash != lenient({"model": "m1"}).config_hash


def test_what_cannot_be_described_is_listed() -> None:
    """A lambda has a place and no content: it is named, listed, and the hash marked incomplete."""
    found = lenient(lambda text: text.split())
    assert str(found.document["x"]).endswith("<lambda>'}")
    assert (found.opaque, found.complete) == (("x",), False)


def test_without_live_objects_lenient_is_strict() -> None:
    """A config of plain data is complete, and has the same identity either way."""
    config = {"embedder": {"model": "m1"}, "context_k": 8}
    assert fingerprint(config, strict=False) == fingerprint(config)
    assert fingerprint(config).complete


def test_parameters_of_parameters_are_read_to_a_bounded_depth() -> None:
    """An object within an object within an object counts; what lies deeper is its name."""
    nested = Embedder("a", client=Embedder("b", client=Embedder("c", client=Embedder("d"))))
    inner = lenient(nested).document["x"]
    assert inner["client"]["client"]["model"] == "c"  # type: ignore[index, call-overload]
    assert inner["client"]["client"]["client"] == {"opaque": f"{__name__}.Embedder"}  # type: ignore[index, call-overload]


def test_no_property_is_run() -> None:
    """Reading a config must not compute, fetch or connect."""
    assert lenient(Property(3)).document["x"] == {"opaque": f"{__name__}.Property"}


def test_slots_are_read_and_unset_ones_left_out() -> None:
    """An attribute that was never set has no value."""
    assert lenient(Slotted("m1", 3)).document["x"] == {"opaque": f"{__name__}.Slotted", "model": "m1"}


def test_a_model_that_does_work_is_a_live_object() -> None:
    """A pydantic splitter is its class and fields, for its fields alone are not all it is."""
    assert lenient(Splitter(size=512)).document["x"] == {"opaque": f"{__name__}.Splitter", "size": 512}


def test_a_record_with_a_live_object_in_it_is_known_by_its_class_too() -> None:
    """Plain settings equal a mapping; settings that hold a client name their class."""
    assert lenient(Settings("m1", "c")).document["x"] == {"model": "m1", "client": "c"}
    found = lenient(Settings("m1", threading.Lock()))
    assert found.document["x"] == {
        "opaque": f"{__name__}.Settings",
        "model": "m1",
        "client": {"opaque": "_thread.lock"},
    }
    assert found.opaque == ("x", "x.client")


def test_functions_methods_and_partials_are_named() -> None:
    """A method tells its object, a partial its function and arguments."""
    assert lenient(json.dumps).document["x"] == {"opaque": "json.dumps"}
    method = lenient(Splitter(size=3).split_text).document["x"]
    assert method == {
        "opaque": f"{__name__}.Splitter.split_text",
        "self": {"opaque": f"{__name__}.Splitter", "size": 3},
    }
    partial = lenient(functools.partial(int, base=2)).document["x"]
    assert partial == {"opaque": "functools.partial", "func": {"opaque": "int"}, "args": [], "base": 2}


def test_no_memory_address_is_ever_stored() -> None:
    """Neither an object's own text form nor text that a user made of it leaves its address."""
    config = {
        "a": object(),
        "b": f"{object()} and {object()!r}",
        f"{object()}": 1,
        "c": type("At_0x7f2a10", (), {})(),
    }
    first, second = (
        fingerprint(config | {"b": f"{object()} and {object()!r}"}, strict=False) for _ in range(2)
    )
    assert "0x" not in json.dumps(first.document)
    assert first.config_hash == second.config_hash
    assert set(first.opaque) >= {"a", "b", "c", "config"}


WEIRD: dict[str, Callable[[], object]] = {
    "hostile": Hostile,
    "endless": Endless,
    "dumper": Dumper,
    "mock": MagicMock,
    "keys": lambda: {Hostile: 1, (1, 2): 2, frozenset({1}): 3},
    "nested": lambda: [Hostile(), {"a": Hostile()}],
    "nan": lambda: float("nan"),
    "infinity": lambda: float("inf"),
    "huge": lambda: 10**5000,
    "huge and negative": lambda: -(10**5000),
    "bytes": lambda: b"\xff",
    "bytearray": lambda: bytearray(b"a"),
    "view": lambda: memoryview(b"abc"),
    "surrogate": lambda: "\ud800 half",
    "surrogate key": lambda: {"\udfff": 1},
    "clashes": lambda: {"e\u0301": 1, "\u00e9": 2, 1: 1, "1": 2},
    "generator": lambda: (number for number in range(3)),
    "lock": threading.Lock,
    "module": lambda: json,
    "class": lambda: int,
    "ellipsis": lambda: ...,
    "array": lambda: np.zeros(10_000),
    "array of objects": lambda: np.array([object(), None], dtype=object),
    "builtin": lambda: open,
    "itself": lambda: Itself(Itself(None)),
}


@pytest.mark.parametrize("make", WEIRD.values(), ids=WEIRD)
def test_nothing_in_a_config_makes_lenient_reading_raise(make: Callable[[], object]) -> None:
    """Whatever an object does when it is looked at, the service starts, and the path is listed."""
    found = lenient(make())
    assert not found.complete
    assert found.opaque
    assert "0x" not in json.dumps(found.document)
    assert found.config_hash == lenient(make()).config_hash


@pytest.mark.parametrize("make", WEIRD.values(), ids=WEIRD)
def test_strict_reading_refuses_the_same_with_a_path(make: Callable[[], object]) -> None:
    """What lenient reading lists as opaque, strict reading refuses, always as an error of resweep's own."""
    with pytest.raises(UnstableValueError, match=r"^x"):
        fingerprint({"x": make()})


def test_cycles_and_depth_are_cut() -> None:
    """A config that contains itself, or nests without end, is named where it is cut."""
    cycle: dict[str, Any] = {"model": "m1"}
    cycle["again"] = cycle
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    assert lenient(cycle).document["x"] == {"model": "m1", "again": {"opaque": "dict"}}
    assert len(lenient(deep).opaque) == 1


def test_keys_that_clash_keep_their_values() -> None:
    """Where two keys become one text, both values count, in an order of their own."""
    one = fingerprint({1: "a", "1": "b"}, strict=False)
    two = fingerprint({"1": "b", 1: "a"}, strict=False)
    assert one.document == {"1": ["a", "b"]}
    assert one == two


def test_a_generator_in_a_config_is_not_consumed() -> None:
    """It is the user's, who will want it."""
    numbers = (number for number in range(3))
    lenient(numbers)
    assert list(numbers) == [0, 1, 2]
