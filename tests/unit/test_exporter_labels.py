"""Label values from outside: none takes the page down."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from resweep.domain.snapshot import Sample, Snapshot
from resweep_exporters.labels import clean
from resweep_exporters.prometheus import text


@pytest.mark.parametrize(
    ("value", "shown"),
    [("bad\udc81", "bad\ufffd"), ('a\nb"c\\', 'a\nb"c\\'), (None, "unknown"), ("", "unknown"), ("ok", "ok")],
)
def test_a_value_is_made_fit(value: str | None, shown: str) -> None:
    """Half a surrogate pair is replaced, nothing is "unknown", the rest stays as it is."""
    assert clean(value) == shown


def test_long_values_are_cut_and_stay_apart() -> None:
    """5,000 letters become 64 and a hash of the whole."""
    one, other = clean("x" * 5000), clean("x" * 5001)
    assert one[:65] == "x" * 64 + "-"
    assert len(one) == 73
    assert one != other


@given(st.text(alphabet=st.characters(), max_size=90))
def test_any_value_renders_and_parses_back(value: str) -> None:
    """Whatever text a label holds, the page parses and shows the cleaned value."""
    page, _ = text(Snapshot(ts=0.0, samples=(Sample("resweep_retrievals_total", (value, "c"), 1.0),)))
    parsed = [
        sample.labels["pipeline"]
        for family in text_string_to_metric_families(page.decode())
        for sample in family.samples
        if sample.name == "resweep_retrievals_total"
    ]
    assert parsed == [clean(value)]
