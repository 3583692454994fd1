"""From level effects to a cause, where no question repeats and no pair of answers can be set side by side.

Recurring answers stand in for recurring questions: a list of passages seen before, a passage with the
score it had before. A mix of other questions brings other *known* answers; a change of system new ones.
"""

from __future__ import annotations

from math import exp
from typing import Literal, NamedTuple

from resweep.detect.passive.attribution import BOUNDED, SCALE, percent
from resweep.detect.passive.features import INDEX
from resweep.detect.passive.levels import Finding
from resweep.detect.passive.vocabulary import Vocabulary
from resweep.domain.verdict import Component

LevelReason = Literal["silent_change", "traffic_changed", "score_scale", "ids_renumbered"]
LOUD = 4.0  # predictive t from which a stream counts as moved
RISE = 0.3  # of a share
FEW = 0.1
PART = 0.6  # share of new answers below which most answers are as before
GONE = 0.25


class LevelCause(NamedTuple):
    """A reason, its components and what speaks for them, in words with numbers."""

    reason: LevelReason
    components: tuple[Component, ...]
    why: str


class View:
    """A finding read by stream name."""

    def __init__(self, finding: Finding) -> None:
        self._f = finding

    def rise(self, name: str) -> float:
        """Observed less expected mean; 0 where not observed."""
        value = float(self._f.after[INDEX[name]] - self._f.before[INDEX[name]])
        return value if value == value else 0.0

    def t(self, name: str) -> float:
        """Predictive t of a stream (or the mix)."""
        value = float(self._f.scores[-1] if name == "mix" else self._f.scores[INDEX[name]])
        return value if value == value else 0.0

    def loud(self, *names: str) -> bool:
        """Whether any of some streams moved."""
        return any(abs(self.t(name)) > LOUD for name in names)

    def before(self, name: str) -> float:
        """Expected mean."""
        return float(self._f.before[INDEX[name]])

    def after(self, name: str) -> float:
        """Observed mean."""
        return float(self._f.after[INDEX[name]])

    @property
    def worded(self) -> bool:
        """Whether questions are recorded, so that reworded ones would show."""
        return self.before("query_words") > 0

    @property
    def recurring(self) -> bool:
        """Whether answers used to recur, so that new ones mean something."""
        return self.before("answers_fresh") < 0.5


def vanished(sources: Vocabulary, onset_ts: float, seen_since: int) -> float | None:
    """Return the share of sources, by past frequency, that should have come since an onset and did not.

    `seen_since` is how many passages came since. None where no source was frequent enough to be missed.
    """
    past = [s for s in sources.items.values() if s.first < onset_ts]
    total = sum(s.count for s in past)
    frequent = [s for s in past if total and s.count / total * seen_since >= 3.0]
    mass = sum(s.count for s in frequent)
    return sum(s.count for s in frequent if s.last < onset_ts) / mass if mass else None


def level_cause(finding: Finding, gone: float | None) -> LevelCause:
    """Return the cause a finding speaks for; `gone` is the share of vanished sources."""
    view = View(finding)
    for rule in (_renumbered, _copies, _chunker, _growth, _depth, _same_answers):
        found = rule(view)
        if found is not None:
            return found
    if view.recurring and view.rise("answers_fresh") > FEW:
        return _other_answers(view, gone)
    return _no_recurrence(view, gone)


def _renumbered(v: View) -> LevelCause | None:
    ids = v.rise("passages_new") > RISE or v.rise("misfit") > RISE
    if v.recurring:
        lost = v.rise("answers_fresh")
        if lost > RISE and v.rise("shapes_new") < lost / 3:
            return LevelCause(
                "ids_renumbered", ("index",), "the same scores, tokens and sources come under other ids"
            )
        return None
    if (
        ids
        and v.rise("sources_new") < FEW
        and not v.loud("top", "gap", "spread", "tokens", "context", "count", "copies")
    ):
        return LevelCause(
            "ids_renumbered",
            ("index",),
            "passages come under other ids; scores, tokens and sources stand still",
        )
    return None


def _copies(v: View) -> LevelCause | None:
    if v.rise("copies") < 0.05 or v.t("copies") < LOUD or v.rise("passages_new") < 0.15:
        return None
    if v.rise("sources_new") > FEW or abs(v.rise("tokens")) > 0.1:
        return None
    before, after = percent(v.before("copies")), percent(v.after("copies"))
    why = f"neighbours that repeat one another went from {before} to {after}"
    return LevelCause("silent_change", ("corpus",), why + ": stale copies")


def _chunker(v: View) -> LevelCause | None:
    new, other_text = v.rise("passages_new"), v.rise("misfit")
    if max(new, other_text) < RISE or v.rise("sources_new") > 0.2:
        return None
    if other_text < RISE and v.loud("query_words", "words_new"):
        return None  # other questions reach other passages, and those known hold their texts
    ratio = exp(v.rise("tokens"))
    why = (
        f"{percent(v.after('passages_new'))} of passages are new and "
        f"{percent(max(0.0, v.after('misfit')))} of the old ids "
        f"hold another text, from known sources; passages are {ratio:.2f} times as long"
    )
    if new + other_text < PART and not v.loud("tokens"):
        return LevelCause("silent_change", ("corpus", "chunker"), why)  # chunks of before are still there
    return LevelCause("silent_change", ("chunker",), why)


def _growth(v: View) -> LevelCause | None:
    if v.rise("sources_new") > FEW and v.rise("passages_new") > FEW and v.rise("tail") >= 0:
        why = f"{percent(v.after('sources_new'))} of sources were never seen before"
        return LevelCause("silent_change", ("corpus",), why)
    return None


def _depth(v: View) -> LevelCause | None:
    if not v.loud("count") or abs(v.rise("count")) < 0.05:
        return None
    why = (
        f"passages returned per passage asked for went from {v.before('count'):.2f} to {v.after('count'):.2f}"
    )
    return LevelCause("silent_change", ("depth", "filter"), why)


def _same_answers(v: View) -> LevelCause | None:
    if not v.recurring or v.rise("answers_fresh") > FEW:
        return None
    if v.rise("pairs_new") > RISE:
        return LevelCause("score_scale", ("index",), "the same passages come in answer with other scores")
    return LevelCause(
        "traffic_changed",
        ("traffic",),
        f"answers are the known ones ({percent(v.after('answers_fresh'))} new), in another mix",
    )


def _other_answers(v: View, gone: float | None) -> LevelCause:
    lost = v.rise("answers_fresh")
    if v.loud("words_new", "query_words"):
        return _reworded(v)
    new = f"{percent(lost)} of answers are new"
    if lost < PART:
        return _part(v, new, gone)
    if v.rise("pairs_new") < 0.8 * lost:
        why = f"{new}, scores of the passages left stand still; {percent(gone)} of sources are gone"
        if gone is None:
            return LevelCause("silent_change", ("corpus", "index"), why)
        return LevelCause("silent_change", ("filter", "corpus") if gone > GONE else ("index", "corpus"), why)
    return _scoring(v)


def _part(v: View, new: str, gone: float | None) -> LevelCause:
    """A part of the answers is new and the rest as before: no embedder does that."""
    if gone is not None and gone > GONE:
        why = f"{new}, the others are as before; {percent(gone)} of sources are gone"
        return LevelCause("silent_change", ("filter", "corpus"), why)
    worse = v.t("top") < -LOUD / 2 or v.t("tail") < -LOUD / 2
    if worse and not v.worded:
        why = f"{new} and worse, the others are as before; reworded questions are not ruled out"
        return LevelCause("silent_change", ("corpus", "traffic"), why)
    if worse or v.rise("pairs_new") < 0.8 * v.rise("answers_fresh"):
        why = f"{new}, the others are as before"
        return LevelCause("silent_change", ("filter", "corpus"), why)
    return LevelCause("traffic_changed", ("traffic",), f"{new}, the others are as before, and no worse")


def _reworded(v: View) -> LevelCause:
    longer, new = exp(v.rise("query_words")), percent(v.after("words_new"))
    why = f"questions have {longer:.2f} times as many words, {new} of words are new"
    return LevelCause("traffic_changed", ("traffic",), why)


def _scoring(v: View) -> LevelCause:
    before, after = v.before("top"), v.after("top")
    ratio = after / before if before else 1.0
    moved = f"the top score went from {before:.3g} to {after:.3g}"
    if not 1 / SCALE < ratio < SCALE or (abs(before) > BOUNDED) != (abs(after) > BOUNDED):
        return LevelCause("silent_change", ("reranker", "embedder"), f"{moved}: another scale")
    if v.loud("query_words", "words_new"):
        return _reworded(v)
    why = f"known passages come with other scores ({moved}); reworded questions are not ruled out"
    return LevelCause("silent_change", ("embedder", "traffic"), why)


def _no_recurrence(v: View, gone: float | None) -> LevelCause:
    if gone is not None and gone > 0.15 and v.rise("tail") < 0:
        return LevelCause("silent_change", ("filter", "corpus"), f"{percent(gone)} of sources are gone")
    if v.loud("query_words", "words_new"):
        return _reworded(v)
    if v.t("mix") > LOUD / 2 and not _rescaled(v):
        return LevelCause("traffic_changed", ("traffic",), "other groups of questions are asked")
    if v.loud("top", "gap", "spread", "tail", "top_spread", "spread_spread"):
        return _scoring(v)
    if v.loud("tokens", "context"):
        return LevelCause(
            "silent_change", ("chunker", "traffic"), f"passages are {exp(v.rise('tokens')):.2f} times as long"
        )
    return LevelCause("traffic_changed", ("traffic",), "other groups of questions are asked")


def _rescaled(v: View) -> bool:
    before, after = v.before("top"), v.after("top")
    return bool(before) and not 1 / SCALE < after / before < SCALE
