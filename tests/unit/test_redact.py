"""The redaction that comes with resweep: what it takes out, and what it leaves alone."""

from __future__ import annotations

import random
import uuid

import pytest

import resweep
from resweep.redact import checks, standard

ASKED = "mail jane@example.com about card 4111 1111 1111 1111, order 20260501123456789"
KEPT = "mail [email] about card [card], order 20260501123456789"


def test_addresses_and_cards_go_and_the_order_stays() -> None:
    """Order numbers have as many digits as cards."""
    assert standard(ASKED) == KEPT


@pytest.mark.parametrize(
    "card",
    [
        "4111111111111111",
        "4111-1111-1111-1111",
        "5555 5555 5555 4444",
        "2223003122003222",
        "378282246310005",
        "3782 822463 10005",
        "30569309025904",
        "6011111111111117",
        "3530111333300000",
        "4222222222222",
    ],
)
def test_cards_of_every_issuer_go(card: str) -> None:
    """In one run, or in the groups that are printed on them."""
    assert standard(f"my card {card}.") == "my card [card]."
    assert standard(f"({card})") == "([card])"


@pytest.mark.parametrize(
    "text",
    [
        "4111111111111112",  # its check digit is wrong
        "1697982593201336000",
        "order-4111111111111111",
        "x4111111111111111",
        "4111 11111 11111 11",
        "0000000000000000",
        "12345678901234567890123",
        "2026-05-01 12:34:56.789",
        "192.168.100.100",
        "3.14159265358979",
        "me@home and you@work",
        "@handle",
    ],
)
def test_what_only_looks_like_one_stays(text: str) -> None:
    """Ids, timestamps, numbers with a fraction, handles."""
    assert standard(text) == text


@pytest.mark.parametrize(
    "address", ["jane.doe+x@mail.example.co.uk", "JANE@EXAMPLE.COM", "müller@bücher.example", "a%40b.example"]
)
def test_addresses_in_every_spelling_go(address: str) -> None:
    """Also where one stands in a URL."""
    assert standard(f"<{address}>, please") == "<[email]>, please"


def test_ids_and_timestamps_stay_as_they_are() -> None:
    """10,000 random UUIDs and as many times in nanoseconds: none is touched."""
    chance = random.Random(5)
    ids = [str(uuid.UUID(int=chance.getrandbits(128), version=4)) for _ in range(10_000)]
    times = [str(1_697_982_593_201_336_000 + chance.getrandbits(60)) for _ in range(10_000)]
    assert [one for one in (*ids, *times) if standard(one) != one] == []


def test_long_texts_take_no_longer_than_they_are() -> None:
    """No run of signs makes a pattern try again and again."""
    for text in ("a" * 50_000, "1 " * 50_000, "a.b-" * 20_000 + "@", "a@" + "b." * 50_000, "4 1-" * 30_000):
        assert standard(text) == text


def test_a_check_digit_is_checked() -> None:
    """The last digit follows from the others."""
    assert [number for number in range(79927398710, 79927398720) if checks(str(number))] == [79927398713]


def test_two_questions_that_differ_in_an_address_are_one() -> None:
    """The identity of a question is that of what may be kept of it."""

    def answer(query: str) -> list[str]:
        return ["passage"]

    with resweep.testing.capture() as sink:
        retrieve = resweep.watch(answer, sink=sink, redact=standard, capture="sampled")
        retrieve("mail jane@example.com")
        retrieve("mail john@example.org")
        retrieve("mail nobody")
        sink.flush()
    one, other, third = sink.events
    assert one.query_key == other.query_key != third.query_key
    assert (one.query, other.query) == ("mail [email]", "mail [email]")


def test_the_retriever_still_gets_what_was_asked() -> None:
    """Only what is kept is redacted."""
    got: list[str] = []

    def retrieve(query: str) -> list[dict[str, str]]:
        got.append(query)
        return [{"id": "a", "text": f"about {query}"}]

    with resweep.testing.capture() as sink:
        resweep.watch(retrieve, sink=sink, redact=standard, capture="text")(ASKED)
        sink.flush()
    (event,) = sink.events
    assert (got, event.query, event.hits[0].text) == ([ASKED], KEPT, f"about {KEPT}")


def test_a_hook_that_fails_costs_the_text_not_the_event() -> None:
    """Every number is there, and what was dropped is counted."""

    def broken(text: str) -> str:
        raise ValueError(text)

    def retrieve(query: str) -> list[dict[str, object]]:
        return [{"id": "a", "score": 0.5, "text": "t"}]

    with resweep.testing.capture() as sink:
        resweep.watch(retrieve, sink=sink, redact=broken, capture="text")("secret")
        sink.flush()
    (event,) = sink.events
    assert (event.query, event.hits[0].text, event.hits[0].score, event.returned) == (None, None, 0.5, 1)
    assert sum(window.get("dropped:redaction") for window in sink.windows) == 2
