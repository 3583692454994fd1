"""Canonical JSON: one byte string for one piece of plain data, as in RFC 8785.

Sorted keys (by UTF-16 code units), numbers as ECMAScript writes them, no white space, UTF-8. The writer
changes no text; `nfc` is a step of its own, taken before.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable
from json.encoder import encode_basestring
from typing import TypeAlias

from resweep.domain.errors import ConfigError

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"

MAX_INTEGER = 2**53  # beyond it, neighbouring integers share one double

# Characters younger than Unicode 14 (Python 3.11) that combine, reorder or decompose. A newer Python knows
# them and would normalise text around them differently; splitting there gives every Python the answer of
# the oldest one, for which they are plain starters.
_YOUNG = re.compile(
    "[\u0897\u0ece\u1acf-\u1add\u1ae0-\u1aeb\U000105c0-\U000105ff\U00010d40-\U00010d8f\U00010efa-\U00010eff"
    "\U00011380-\U000113ff\U00011b60-\U00011b6f\U00011de0-\U00011def\U00011f00-\U00011f5f"
    "\U00016100-\U0001613f\U00016d40-\U00016d7f\U0001e08f\U0001e4d0-\U0001e4ff\U0001e5d0-\U0001e5ff"
    "\U0001e6c0-\U0001e6ff]"
)


def jcs(value: Plain) -> bytes:
    """Return the canonical bytes of plain data.

    Source: RFC 8785, JSON Canonicalization Scheme. Raises `ConfigError` for what JSON cannot hold: NaN, an
    infinity, an integer beyond 2^53, a lone surrogate, a value that is no plain data.
    """
    parts: list[str] = []
    _write(value, parts.append)
    try:
        return "".join(parts).encode()
    except UnicodeEncodeError:
        raise ConfigError(
            "text holds half of a surrogate pair, which UTF-8 cannot hold; decode it rightly"
        ) from None


def _write(value: Plain, put: Callable[[str], None]) -> None:
    if isinstance(value, str):
        put(encode_basestring(value))
    elif value is None or isinstance(value, bool):
        put({None: "null", True: "true", False: "false"}[value])
    elif isinstance(value, (int, float)):
        put(number(value))
    elif isinstance(value, list):
        _write_list(value, put)
    elif isinstance(value, dict):
        _write_mapping(value, put)
    else:
        raise ConfigError(f"plain data was expected, {type(value).__name__} came")


def _write_list(items: list[Plain], put: Callable[[str], None]) -> None:
    before = "["
    for item in items:
        put(before)
        _write(item, put)
        before = ","
    put("]" if items else "[]")


def _write_mapping(items: dict[str, Plain], put: Callable[[str], None]) -> None:
    before = "{"
    for key in sorted_keys(items):
        put(before)
        put(encode_basestring(key))
        put(":")
        _write(items[key], put)
        before = ","
    put("}" if items else "{}")


def sorted_keys(keys: Iterable[str]) -> list[str]:
    """Return keys in the order of their UTF-16 code units (RFC 8785, section 3.2.3)."""
    found = list(keys)
    if all(map(str.isascii, found)):
        return sorted(found)
    return sorted(found, key=lambda key: key.encode("utf-16-be", "surrogatepass"))


def number(value: float) -> str:
    """Return a finite number as ECMAScript writes it: the shortest digits that read back the same.

    Source: ECMA-262, Number::toString, as RFC 8785 (section 3.2.2.3) asks. Raises `ConfigError` for NaN,
    infinities, and integers beyond 2^53 in either direction.
    """
    if isinstance(value, int):
        if abs(value) > MAX_INTEGER:
            raise ConfigError(
                "an integer beyond 2^53 cannot be told from its neighbours in JSON; write it as text"
            )
        return str(value)
    if not math.isfinite(value):
        raise ConfigError("a finite number was expected, NaN or an infinity came")
    if value == 0:
        return "0"  # -0 too
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(digits) - len(fraction) + int(exponent or 0)
    return ("-" if value < 0 else "") + _layout(digits.rstrip("0"), point)


def _layout(digits: str, point: int) -> str:
    """Lay out `0.digits * 10**point`."""
    if len(digits) <= point <= 21:
        return digits.ljust(point, "0")
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    rest = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{rest}e{point - 1:+d}"


def nfc(text: str) -> str:
    """Return text in Unicode normal form C, the same on every Python from 3.11 on.

    Normal forms of assigned characters never change; characters assigned after Unicode 14 are left as they
    stand, so that a newer Python does not give a config another identity.
    """
    if text.isascii():
        return text
    if not _YOUNG.search(text):
        return unicodedata.normalize("NFC", text)
    start, parts = 0, []
    for young in _YOUNG.finditer(text):
        parts += [unicodedata.normalize("NFC", text[start : young.start()]), young.group()]
        start = young.end()
    return "".join([*parts, unicodedata.normalize("NFC", text[start:])])
