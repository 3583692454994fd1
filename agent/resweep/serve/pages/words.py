"""How the pages write numbers and times: one place, so that every page says the same thing alike."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from resweep.domain.measures import RELEVANT_GRADE

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0

VERDICTS: Mapping[str, str] = {
    "expired": "Expired",
    "suspect": "Suspect",
    "untuned": "Untuned",
    "valid": "Valid",
    "too_little_data": "Too little data",
}
STRATA: Mapping[str, str] = {
    "uniform": "Uniform",
    "low_confidence": "Low confidence",
    "novel": "Novel",
    "empty_or_short": "Empty or short",
    "feedback": "Negative feedback",
    "canary_lost": "Canary lost",
    "imported": "Imported",
    "synthetic": "Synthetic",
}
EFFECTS: Mapping[str, str] = {
    "invalidates": "Ends the validity of k",
    "depth": "Changes the depth",
    "inert": "Does not matter for k",
}
PEAKS: Mapping[str, str] = {
    "down": "the best k should go down",
    "up": "the best k should go up",
    "unknown": "the best k may go either way",
    "none": "",
}


def span(seconds: float) -> str:
    """Return a length of time in two units at most: `18 h 20 min`, `9 d`."""
    seconds = max(0.0, seconds)
    if seconds < MINUTE:
        return f"{int(seconds)} s"
    if seconds < HOUR:
        return f"{int(seconds // MINUTE)} min"
    if seconds < DAY:
        return _two(seconds, HOUR, "h", MINUTE, "min")
    return _two(seconds, DAY, "d", HOUR, "h") if seconds < 7 * DAY else f"{int(seconds // DAY)} d"


def _two(seconds: float, large: float, name: str, small: float, rest_name: str) -> str:
    whole, rest = divmod(seconds, large)
    parts = int(rest // small)
    return f"{int(whole)} {name}" + (f" {parts} {rest_name}" if parts else "")


def when(ts: float) -> str:
    """Return a time in UTC, to the minute."""
    at = datetime.fromtimestamp(ts, UTC)
    return f"{at.day} {at:%b %Y, %H:%M} UTC"


def short_when(ts: float) -> str:
    """Return day and time in UTC without the year."""
    at = datetime.fromtimestamp(ts, UTC)
    return f"{at.day} {at:%b %H:%M}"


def day(ts: float) -> str:
    """Return a day in UTC."""
    at = datetime.fromtimestamp(ts, UTC)
    return f"{at.day} {at:%b %Y}"


def clock(ts: float) -> str:
    """Return the time of day in UTC."""
    return f"{datetime.fromtimestamp(ts, UTC):%H:%M}"


def iso(ts: float) -> str:
    """Return a time as machines read it."""
    return datetime.fromtimestamp(ts, UTC).isoformat(timespec="seconds")


def count(value: float) -> str:
    """Return a count with commas; fractions only below 10."""
    return f"{value:,.1f}" if value < 10 and value != int(value) else f"{value:,.0f}"


def share(value: float) -> str:
    """Return a share in per cent: one digit below 10, else whole."""
    return f"{_number(value * 100)} %"


def points(value: float) -> str:
    """Return a difference of shares in points, with its sign."""
    return f"{value * 100:+.1f}".replace("-", "\u2212")


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 10 or value == 0 else f"{value:.1f}"


def number(value: float) -> str:
    """Return a plain number: three significant digits below 1,000."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def named(name: str) -> str:
    """Return a name of ours in words: `quality_drop` is `Quality drop`."""
    return name.replace("_", " ").capitalize()


def stratum(name: str) -> str:
    """Return the name of a stratum in words."""
    return STRATA.get(name, named(name))


def verdict(name: str) -> str:
    """Return the name of a verdict in words."""
    return VERDICTS.get(name, named(name))


def many(n: int, one: str, more: str = "") -> str:
    """Return a number with its noun: `1 flag`, `2 flags`."""
    return f"{count(n)} {one if n == 1 else more or one + 's'}"


def graded(grade: float, grades: int = 1) -> str:
    """Return a grade in words; `grades` is the highest that is given here."""
    if grade < RELEVANT_GRADE:
        return "does not"
    if grades == 1:
        return "answers it"
    return "fully answers it" if grade > RELEVANT_GRADE else "partly answers it"


def sentence(text: str) -> str:
    """Return a text that begins with a capital letter, unless it begins with a name."""
    return text[:1].upper() + text[1:] if text.partition(" ")[0] in _OPENERS else text


_ASIDE = re.compile(r" \([^()]*\)")
_OPENERS = frozenset(
    re.findall(
        r"\w+",
        "a all an asked every it its most no none nothing of one only queries questions repeated retrievals "
        "some the there this two what",
    )
)
BRIEF = 180  # characters


def brief(text: str) -> str:
    """Return a long reason without its asides, cut at a clause where it is still too long."""
    if len(text) > BRIEF:
        text = _ASIDE.sub("", text)
    if len(text) <= BRIEF:
        return text
    head = text[:BRIEF].rpartition("; ")[0] or text[: BRIEF - 1]
    return f"{head} …"


FILTERS: Mapping[str, Callable[..., str]] = {
    one.__name__: one
    for one in (
        *(
            span,
            when,
            short_when,
            clock,
            day,
            iso,
            count,
            share,
            points,
            number,
            named,
            stratum,
            verdict,
            many,
        ),
        sentence,
        graded,
        brief,
    )
}
