"""Filter values of a case: as text that folds equal questions together, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resweep.domain.case import filters_of, scope_of

VALUES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)


@given(st.dictionaries(st.text(), VALUES | st.lists(VALUES), min_size=1))
def test_filters_come_back_from_their_scope(filters: dict[str, object]) -> None:
    """In whatever order they were given."""
    assert filters_of(scope_of(filters)) == filters
    assert scope_of(dict(reversed(filters.items()))) == scope_of(filters)


@pytest.mark.parametrize("scope", ["", "[('a', <object>)]", "nonsense", "[1, 2]", "("])
def test_a_scope_that_is_no_plain_data_tells_no_filters(scope: str) -> None:
    """Nothing is run to find out."""
    assert filters_of(scope) is None


def test_no_filters_have_no_scope() -> None:
    """Neither none nor an empty mapping."""
    assert scope_of(None) == scope_of({}) == ""
