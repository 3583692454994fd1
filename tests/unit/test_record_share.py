"""The even sample tells with each event how likely it was to be kept."""

from __future__ import annotations

import resweep
from resweep.record.uniform import Uniform
from resweep.testing import capture


def test_the_share_is_the_rate_of_the_moment() -> None:
    """It halves where a minute brings more than its budget; weights then still add up to the calls."""
    uniform = Uniform(rate=0.5, per_minute=100)
    shares = [uniform.share for number in range(20_000) if uniform.takes(number, 1)]
    assert shares[0] == 0.5
    assert min(shares) < 0.1
    assert abs(sum(1 / share for share in shares) - 20_000) < 2_000


def answer(query: str) -> list[dict[str, object]]:
    """One passage, whatever is asked."""
    return [{"id": "a", "score": 0.5}]


def test_a_sampled_event_carries_its_probability() -> None:
    """From the recorder on."""
    with capture() as sink:
        retrieve = resweep.watch(answer, pipeline="bot", sink=sink)
        for i in range(300):
            retrieve(f"question {i}")
        resweep.flush()
    assert sink.events
    assert all(0 < event.p <= 1 for event in sink.events)
