"""A restart changes nothing: the state goes to bytes and back, and the same flags follow."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from resweep.detect.passive.engine import PassiveEngine
from resweep.domain.errors import InputError


def test_an_engine_restored_in_mid_stream_says_what_the_other_says(lab: Any) -> None:
    """Dumped after the alarm's first day of learning and again while the flag is open."""
    one, other = PassiveEngine("p", salt=lab.salt), PassiveEngine("p", salt=lab.salt)
    last = lab.feed(one, lab.traffic(lab.world(), 16_000))
    one.advance(last + 60)
    lab.flags(one)
    other.restore(one.dump())
    for engine in (one, other):
        lab.feed(engine, lab.traffic(lab.world(seed=5), 400, start=last + 60, first=16_000))
        engine.advance(last + 4 * 3600)
    assert lab.flags(other) == lab.flags(one) != []
    third = PassiveEngine("p", salt=lab.salt)
    third.restore(one.dump())
    assert third.status() == one.status()
    assert third.dump() == one.dump()


def test_the_state_is_bounded(lab: Any) -> None:
    """Fifteen megabytes a config hold whatever a day of questions brings."""
    engine = PassiveEngine("p", salt=lab.salt)
    lab.feed(engine, lab.traffic(lab.world(), 5000))
    assert len(engine.dump()) < 15_000_000


@pytest.mark.parametrize(
    "data", [b"", b"\xc1", msgspec.msgpack.encode(["resweep.passive/9", None]), msgspec.msgpack.encode(3)]
)
def test_other_bytes_are_refused_in_words(data: bytes) -> None:
    """A state of another version is no state."""
    with pytest.raises(InputError, match=r"resweep\.passive/1"):
        PassiveEngine("p").restore(data)
