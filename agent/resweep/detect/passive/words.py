"""The sentences of passive flags: what was seen, in numbers, since when, and what it means for k."""

from __future__ import annotations

from datetime import UTC, datetime

from resweep.detect.passive.attribution import percent
from resweep.detect.passive.level_cause import LevelReason
from resweep.detect.passive.levels import Finding
from resweep.detect.passive.outcome import Measure, OutcomeAlarm
from resweep.detect.passive.twins import TwinAlarm

_MEASURES: dict[Measure, str] = {
    "empty": "empty answers",
    "short": "answers shorter than asked",
    "errors": "errors",
    "negative": "negative feedback",
}


def when(ts: float) -> str:
    """Return a unix time as minutes of UTC."""
    return datetime.fromtimestamp(ts, UTC).strftime("%Y-%m-%d %H:%M UTC")


def named(components: tuple[str, ...]) -> str:
    """Return components as `a` or `a or b`."""
    return " or ".join(components)


def twins_message(alarm: TwinAlarm, components: tuple[str, ...], why: str) -> str:
    """Return the sentence of a system change seen on twins."""
    return (
        f"The same questions get other answers, and no change was declared: {alarm.hits} of {alarm.n} "
        "repeated questions "
        f"({percent(alarm.hits / alarm.n)}) since about {when(alarm.onset_ts)}; "
        f"{100 * alarm.expected:.1f} % is usual. "
        f"Probable cause: {named(components)} ({why}). The tuned k was not chosen for this system."
    )


def novelty_message(alarm: TwinAlarm) -> str:
    """Return the sentence of a traffic change seen on new questions."""
    return (
        f"Other questions are asked: {alarm.hits} of {alarm.n} ({percent(alarm.hits / alarm.n)}) since about "
        f"{when(alarm.onset_ts)} were not known 12 hours before; {percent(alarm.expected)} is usual. "
        "Repeated questions still get the same answers."
    )


_LEADS: dict[LevelReason, str] = {
    "silent_change": "Answers look different, and no change was declared",
    "traffic_changed": "Other questions are asked",
    "score_scale": "Scores come on another scale; answers are the same",
    "ids_renumbered": "Passages come under other ids; answers are the same",
}


def levels_message(finding: Finding, reason: LevelReason, components: tuple[str, ...], why: str) -> str:
    """Return the sentence of a change seen on levels."""
    tail = " The tuned k was not chosen for this system." if reason == "silent_change" else ""
    return (
        f"{_LEADS[reason]}: the loudest of the hourly statistics is {finding.loudest}, since about "
        f"{when(finding.onset_ts)}. "
        f"Probable cause: {named(components)} ({why}).{tail}"
    )


def scale_message(share: float, flipped: bool) -> str:
    """Return the sentence of a change of score scale or direction."""
    what = "Score direction changed" if flipped else "Score scale changed"
    same = "hold the same passages in the same order with other scores"
    return f"{what}: {percent(share)} of answers {same}. k is not in doubt."


def renumbered_message(share: float) -> str:
    """Return the sentence of new ids over the same passages."""
    same = "hold the same scores, tokens and sources under other ids"
    return f"Passages were renumbered: {percent(share)} of answers {same}."


def outcome_message(alarm: OutcomeAlarm) -> str:
    """Return the sentence of a worse outcome."""
    return (
        f"Quality dropped: {alarm.hits} of {alarm.n} calls ({percent(alarm.hits / alarm.n)}) since "
        f"about {when(alarm.onset_ts)} "
        f"are {_MEASURES[alarm.measure]}; {100 * alarm.expected:.1f} % is usual."
    )
