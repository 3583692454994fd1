"""The canonical writer against what RFC 8785 publishes."""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from resweep.domain.canonical import jcs, nfc, number
from resweep.domain.errors import ConfigError

RFC: dict[str, Any] = json.loads((Path(__file__).parent / "rfc8785.json").read_text(encoding="utf-8"))


def double(bits: str) -> float:
    """Return the double with these bits, most significant first."""
    return float(struct.unpack(">d", bytes.fromhex(bits))[0])


@pytest.mark.parametrize(("bits", "written"), RFC["numbers"])
def test_a_double_is_written_as_in_appendix_b(bits: str, written: str) -> None:
    """Each row of the table of RFC 8785, appendix B."""
    assert number(double(bits)) == written


@pytest.mark.parametrize("bits", RFC["refused_numbers"])
def test_what_is_no_number_is_refused(bits: str) -> None:
    """NaN and the infinities have no form in JSON."""
    with pytest.raises(ConfigError, match="a finite number was expected"):
        jcs([double(bits)])


def test_the_example_of_the_rfc_gives_its_bytes() -> None:
    """Section 3.2.2's input gives the bytes printed in section 3.2.4."""
    assert jcs(json.loads(RFC["example"]["input"])).hex() == RFC["example"]["hex"]


def test_keys_sort_by_utf_16_code_units() -> None:
    """Section 3.2.3: an emoji (a surrogate pair) sorts before U+FB33, though its code point is larger."""
    written = jcs(RFC["order_of_keys"]["input"])
    assert list(json.loads(written).values()) == RFC["order_of_keys"]["output"]


def test_text_is_written_with_the_shortest_escapes() -> None:
    """Section 3.2.2.2: two-character escapes where there are any, lower-case hex, all else as it stands."""
    assert (
        jcs('\b\t\n\f\r"\\/\x00\x1f\x7f\u2028é')
        == '"\\b\\t\\n\\f\\r\\"\\\\/\\u0000\\u001f\x7f\u2028é"'.encode()
    )


def test_canonical_text_is_not_normalised_by_the_writer() -> None:
    """RFC 8785 leaves text as it is; normal form C is a step of its own, taken before."""
    assert jcs("A\u030a") == '"A\u030a"'.encode()
    assert jcs(nfc("A\u030a")) == '"Å"'.encode()


def many_doubles() -> Iterator[float]:
    """Yield doubles of all sizes: the smallest normal ones, then what SHA-256 of the last block spells."""
    for step in range(2000):
        yield double(f"{0x0010000000000000 + step:016x}")
    block = bytes(32)
    while True:
        block = hashlib.sha256(block).digest()
        yield from (value for value in struct.unpack("<4d", block) if math.isfinite(value))


def test_any_double_reads_back_bit_for_bit() -> None:
    """20,000 doubles of all sizes: the digits read back the same, and there are never more than 17."""
    for value in islice(many_doubles(), 20_000):
        written = number(value)
        assert float(written) == value
        assert len(written.partition("e")[0].replace(".", "").strip("-0")) <= 17
