"""What Python values become in a canonical document."""

from __future__ import annotations

import enum
import json
import tomllib
from collections import OrderedDict, UserDict, deque, namedtuple
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePosixPath, PureWindowsPath
from types import MappingProxyType
from typing import Any
from uuid import UUID

import msgspec
import numpy as np
import pydantic
import pytest

from resweep import documents
from resweep.domain.canonical import Plain
from resweep.domain.errors import UnstableValueError
from resweep.domain.fingerprint import fingerprint


def document(value: object, **options: Any) -> Plain:
    """Return what one value becomes."""
    return fingerprint({"x": value}, **options).document.get("x")


class Colour(enum.Enum):
    RED = "red"
    BLUE = 2


class Level(enum.IntEnum):
    HIGH = 3


@dataclass
class Chunker:
    tokens: int = 512
    separator: str | None = None
    parts: list[str] = field(default_factory=list)


@dataclass
class Worker:
    model: str = "m1"

    def embed_query(self, text: str) -> list[float]:
        return [float(len(text))]


class Model(pydantic.BaseModel):
    name: str
    colour: Colour = Colour.RED
    path: Path = Path("a/b")
    inner: Chunker = Chunker(tokens=1)


class Struct(msgspec.Struct):
    tokens: int
    name: str | None = None


Row = namedtuple("Row", ["a", "b"])


class Lookup(Mapping[str, int]):
    def __getitem__(self, key: str) -> int:
        return {"a": 1, "b": 2}[key]

    def __iter__(self) -> Iterator[str]:
        return iter(("b", "a"))

    def __len__(self) -> int:
        return 2


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (1.0, 1),
        (-0.0, 0),
        (0.1, 0.1),
        (2**53, 2**53),
        (True, True),
        ("e\u0301", "\u00e9"),
        ((1, (2, 3)), [1, [2, 3]]),
        (range(3), [0, 1, 2]),
        (deque([1, 2]), [1, 2]),
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset({10, 9, 2.5}), [2.5, 9, 10]),
        ({"b", "a", 'a"'}, ["a", 'a"', "b"]),
        ({"a", 2, None, True}, [2, "a", None, True]),
        ({(1, 2), (0, 9)}, [[0, 9], [1, 2]]),
        ({"e\u0301", "\u00e9"}, ["\u00e9"]),
        (OrderedDict(b=1, a=2), {"a": 2, "b": 1}),
        (UserDict({"a": 1}), {"a": 1}),
        (MappingProxyType({"a": 1}), {"a": 1}),
        (Lookup(), {"a": 1, "b": 2}),
        (Colour.RED, "red"),
        (Colour.BLUE, 2),
        (Level.HIGH, 3),
        (PurePosixPath("/data/x"), "/data/x"),
        (PureWindowsPath("data\\x"), "data/x"),
        (date(2026, 1, 2), "2026-01-02"),
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "2026-01-02T03:04:05Z"),
        (datetime(2026, 1, 2, 3, 4, 5), "2026-01-02T03:04:05"),  # noqa: DTZ001 - as files hold it
        (timedelta(minutes=1, milliseconds=500), 60.5),
        (UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        (Decimal("0.10"), 0.1),
        (Decimal("3.0"), 3),
        (Decimal("0.12345678901234567890"), "0.1234567890123456789"),
        (Fraction(1, 4), 0.25),
        (Fraction(1, 3), "1/3"),
        (Chunker(), {"tokens": 512, "parts": []}),
        (Row(1, None), {"a": 1}),
        (Struct(5), {"tokens": 5}),
        (Model(name="n"), {"name": "n", "colour": "red", "path": "a/b", "inner": {"tokens": 1, "parts": []}}),
        (
            pydantic.TypeAdapter(pydantic.AnyUrl).validate_python("https://db.example/x"),
            "https://db.example/x",
        ),
        (np.float64(0.5), 0.5),
        (np.float32(0.5), 0.5),
        (np.int64(7), 7),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (np.datetime64("2026-01-02"), "2026-01-02"),
        (np.dtype("float16"), "float16"),
    ],
    ids=repr,
)
def test_a_value_is_brought_to_plain_data(value: object, plain: Plain) -> None:
    """Each usual type has one plain form, and lenient reading gives the same."""
    assert document(value) == plain
    assert type(document(value)) is type(plain)
    assert fingerprint({"x": value}, strict=False) == fingerprint({"x": value})


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (1, "1"),
        (True, "true"),
        (0.5, "0.5"),
        (2.0, "2"),
        (Colour.RED, "red"),
        (UUID(int=0), str(UUID(int=0))),
    ],
)
def test_a_key_is_brought_to_text_as_in_json(key: object, text: str) -> None:
    """YAML has keys that are numbers and booleans; JSON and TOML write the same as text."""
    assert fingerprint({key: 1}) == fingerprint({text: 1})


def test_null_equals_absent_but_holds_its_place_in_a_list() -> None:
    """`reranker: null` is no reranker; the order of a list counts, gaps included."""
    assert fingerprint({"a": 1, "b": None}) == fingerprint({"a": 1})
    assert document([None, 1]) == [None, 1]


def test_a_file_gives_one_identity_in_yaml_toml_and_json(tmp_path: Path) -> None:
    """The same content from each kind of file, dates, sets and number keys among it."""
    yaml = tmp_path / "rag.yaml"
    yaml.write_text(
        "embedder: {model: m1, dimensions: 384, scale: 1.0}\n"
        "chunk: [400, 60]\n"
        "since: 2026-01-02\n"
        "at: 2026-01-02T03:04:05Z\n"
        "langs: !!set {fr, de}\n"
        "weights: {1: 0.5, 2: 0.5}\n"
        "reranker: null\n"
    )
    toml = tomllib.loads(
        'chunk = [400, 60]\nsince = 2026-01-02\nat = 2026-01-02T03:04:05Z\nlangs = ["de", "fr"]\n'
        '[embedder]\nmodel = "m1"\nscale = 1\ndimensions = 384\n[weights]\n1 = 0.5\n2 = 0.5\n'
    )
    plain = json.loads(
        '{"embedder": {"dimensions": 384, "model": "m1", "scale": 1}, "chunk": [400, 60.0],'
        ' "since": "2026-01-02", "at": "2026-01-02T03:04:05Z", "langs": ["de", "fr"],'
        ' "weights": {"1": 5e-1, "2": 0.5}}'
    )
    hashes = {fingerprint(config).config_digest for config in (documents.read(yaml), toml, plain)}
    assert len(hashes) == 1


def test_a_stored_document_has_the_identity_of_its_config() -> None:
    """Written as JSON and read back, a document gives the same hashes: it can be hashed under later rules."""
    config = {
        "a": {2, 1},
        "b": (1.0, 1e22, 0.1),
        "url": "https://u:p@h/x",
        "e\u0301": Chunker(),
        "token": "abc",
    }
    first = fingerprint(config)
    again = fingerprint(json.loads(json.dumps(first.document)))
    assert (again.config_digest, again.basis_digest, again.document) == (
        first.config_digest,
        first.basis_digest,
        first.document,
    )


@pytest.mark.parametrize(
    ("value", "path", "why"),
    [
        (object(), "x", "object of type object has no stable identity"),
        ({"client": object()}, "x.client", "object of type object has no stable identity"),
        ([1, {"a": object()}], "x[1].a", "object of type object has no stable identity"),
        ({"a.b": object()}, 'x["a.b"]', "object of type object has no stable identity"),
        ({object()}, "x[*]", "object of type object has no stable identity"),
        (lambda: None, "x", "object of type function has no stable identity"),
        (len, "x", "object of type builtin_function_or_method has no stable identity"),
        (Chunker, "x", "has no stable identity; give its name as text"),
        (Worker(), "x", "Worker has no stable identity"),
        (iter([1]), "x", "object of type list_iterator has no stable identity"),
        (1j, "x", "object of type complex has no stable identity"),
        (b"ab", "x", "bytes have no text of their own"),
        (float("nan"), "x", "NaN or an infinity came"),
        (float("-inf"), "x", "NaN or an infinity came"),
        (Decimal("NaN"), "x", "NaN or an infinity came"),
        (2**53 + 1, "x", "an integer beyond 2^53"),
        (-(2**60), "x", "an integer beyond 2^53"),
        ("\ud800", "x", "half of a surrogate pair"),
        ("<Client object at 0x7f2a10c0d310>", "x", "text holds a memory address"),
        ({"e\u0301": 1, "\u00e9": 2}, "x.\u00e9", "two keys become the same text"),
        ({1: 1, "1": 2}, "x.1", "two keys become the same text"),
        ({(1, 2): 1}, "x", "a key is text or a number, tuple came"),
        ({None: 1}, "x", "a key is text or a number, NoneType came"),
        (np.zeros(5000), "x", "an array of 5000 numbers is data"),
        (np.longdouble(1) / 3, "x", "has no stable identity"),
    ],
    ids=repr,
)
def test_what_has_no_identity_is_refused_with_its_path(value: object, path: str, why: str) -> None:
    """The message says where, what came and what to do, and never prints the value."""
    with pytest.raises(UnstableValueError) as refused:
        fingerprint({"x": value})
    assert refused.value.path == path
    assert str(refused.value).startswith(f"{path}: ")
    assert why in str(refused.value)


@pytest.mark.parametrize("config", [None, 3, "text", [1], {1}])
def test_a_config_is_a_mapping(config: object) -> None:
    """Anything else is refused, or described where nothing may be refused."""
    with pytest.raises(UnstableValueError, match="config: "):
        fingerprint(config)
    lenient = fingerprint(config, strict=False)
    assert lenient.opaque == ("config",)
    assert not lenient.complete


def test_a_cycle_and_a_bottomless_config_are_refused() -> None:
    """A config that contains itself, or nests without end, has no canonical form."""
    cycle: dict[str, object] = {}
    cycle["again"] = [cycle]
    deep: object = 1
    for _ in range(100):
        deep = [deep]
    with pytest.raises(UnstableValueError, match=r"^again\[0\]: it contains itself"):
        fingerprint(cycle)
    with pytest.raises(UnstableValueError, match="nested deeper than 64 levels"):
        fingerprint({"x": deep})


def test_the_same_list_twice_is_no_cycle() -> None:
    """YAML anchors share one list between keys."""
    shared = [1, 2]
    assert fingerprint({"a": shared, "b": shared}) == fingerprint({"a": [1, 2], "b": [1, 2]})


def test_a_config_that_grows_on_sharing_is_refused_in_bounded_time() -> None:
    """Forty lists of ten, each holding the next ten times, would be 10^40 values."""
    bomb: list[object] = [1] * 10
    for _ in range(40):
        bomb = [bomb] * 10
    with pytest.raises(UnstableValueError, match="more than 500000 values"):
        fingerprint({"x": bomb})
