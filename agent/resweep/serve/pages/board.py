"""What the overview and a pipeline's page show: read once from the store, said in words by the templates."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from resweep.domain.diff import components
from resweep.domain.invalidation import InvalidationRules
from resweep.domain.verdict import LAYERS, WORST_FIRST, Flag, Layer, TunedK
from resweep.domain.window import Window
from resweep.serve import views
from resweep.serve.agent import Desks
from resweep.serve.pages import charts, figures, words
from resweep.serve.pages.change import ConfigChange, between, last_change
from resweep.serve.pages.figures import Compared, Measure
from resweep.store.rows import Ack, ConfigSeen
from resweep.store.sql import SqlStore

BEFORE_S = 7 * words.DAY
STEPS = (1, 5, 10, 30, 60, 180, 360)  # minutes that one point of a chart stands for
POINTS = 170  # of a chart, at most
LOUDNESS = ("page", "warning", "notice")
LEADS: Mapping[Layer, str] = {
    "declared": "Certain",
    "introspected": "Seen in the live objects",
    "active": "Measured by canaries",
    "twins": "Seen in repeated questions",
    "levels": "Seen in live figures",
    "outcome": "Seen in what users got",
}
LAYER_NAMES: Mapping[Layer, str] = {
    "declared": "Declared config",
    "introspected": "Live objects",
    "active": "Canaries",
    "twins": "Repeated questions",
    "levels": "Live figures",
    "outcome": "Outcomes",
}
CHARTED = (figures.NEGATIVE, figures.EMPTY, figures.DIVERSITY, figures.TOKENS, figures.LATENCY, figures.SHORT)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagRow:
    """A flag with what a person last said of it, and its evidence as (name, value) in words."""

    flag: Flag
    ack: Ack | None
    evidence: Sequence[tuple[str, str]]

    @property
    def title(self) -> str:
        """Its reason, in words."""
        return words.named(self.flag.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A chart with its caption and the values it shows; `narrow` is for phones where `svg` is wide."""

    name: str
    unit: str
    svg: Markup
    narrow: Markup | None
    values: Sequence[tuple[str, str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One thing that happened to a pipeline, for its timeline."""

    ts: float
    kind: str
    title: str
    text: str
    change: ConfigChange | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A pipeline: the row of the overview, its last change, and what was measured on both sides of it.

    `new_share` is the share of the last hour's traffic on the config in charge, `since_change` the
    retrievals it has had. `way_back` is an earlier config with a tuned depth.
    """

    row: Mapping[str, Any]
    change: ConfigChange | None
    flags: Sequence[FlagRow]
    compared: Sequence[Compared]
    charts: Sequence[Drawn]
    new_share: float | None
    since_change: int
    before_retrievals: int
    way_back: tuple[ConfigSeen, TunedK] | None

    @property
    def why(self) -> str:
        """Return the reason in one sentence."""
        named = components(self.change.changes) if self.change else ()
        if self.row["verdict"] != "expired" or not named or self.row["tuned"] is not None:
            return words.brief(str(self.row["why"]))
        what = " and ".join(named)
        if self.way_back is None:
            return f"the {what} changed, and no k was tuned for what runs now"
        return f"k = {self.way_back[1].context_k} was tuned for another {what}, which no longer runs"

    @property
    def commands(self) -> Sequence[str]:
        """What to run next, each once."""
        every = (self.row["next_command"], *(one.flag.next_command for one in self.flags))
        return list(dict.fromkeys(filter(None, every)))

    @property
    def sure(self) -> Sequence[tuple[str, str]]:
        """Return, by layer, how one knows."""
        seen: dict[Layer, str] = {}
        for one in self.flags:
            declared = one.flag.reason == "config_changed"
            said = "it changed, the pipeline declares it" if declared else one.title.lower()
            seen.setdefault(one.flag.layer, said)
        return [(LEADS[layer], seen[layer]) for layer in LAYERS if layer in seen]

    @property
    def hurts(self) -> Sequence[Compared]:
        """Return what is clearly worse."""
        return [one for one in self.compared if one.word == "worse"]

    @property
    def layers(self) -> Sequence[tuple[str, Sequence[FlagRow]]]:
        """Return every layer with its open flags."""
        return [(LAYER_NAMES[one], [f for f in self.flags if f.flag.layer == one]) for one in LAYERS]


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """The overview: rows worst first, open flags loudest first, the worst pipeline's story."""

    now: float
    rows: Sequence[Mapping[str, Any]]
    flags: Sequence[FlagRow]
    worst: Story | None

    @property
    def headline(self) -> str:
        """Return what needs someone, counted."""
        needing = sum(_needs_someone(row) for row in self.rows)
        if not self.rows:
            return "No pipeline yet"
        if not needing:
            states = {row["verdict"] for row in self.rows}
            n = len(self.rows)
            said = "valid" if states == {"valid"} else "quiet"
            return f"The one pipeline is {said}" if n == 1 else f"All {n} pipelines are {said}"
        verb = "needs" if needing == 1 else "need"
        return f"{needing} of {words.many(len(self.rows), 'pipeline')} {verb} you now"

    @property
    def tally(self) -> str:
        """Return how many pipelines have which verdict, and how many flags are open."""
        found = [(words.verdict(s).lower(), sum(r["verdict"] == s for r in self.rows)) for s in WORST_FIRST]
        states = ", ".join(f"{n} {name}" for name, n in found if n)
        return f"{states}. {words.many(len(self.flags), 'open flag')}." if states else ""


def _needs_someone(row: Mapping[str, Any]) -> bool:
    return row["verdict"] in ("expired", "suspect")


def board(desks: Desks, rules: InvalidationRules, now: float) -> Board:
    """Return the overview of an agent."""
    store = desks.store
    found = views.pipelines_object(store, desks.desk.verdicts(now), now)
    rows = sorted(found, key=_rank)
    worst = next((row for row in rows if row["verdict"] in ("expired", "suspect", "untuned")), None)
    return Board(
        now=now,
        rows=rows,
        flags=flag_rows(store, store.flags()),
        worst=None if worst is None else story(store, worst, rules, now, 1),
    )


def _rank(row: Mapping[str, Any]) -> tuple[int, int, str]:
    return WORST_FIRST.index(row["verdict"]), -int(row["open_flags"]), str(row["name"])


def flag_rows(store: SqlStore, found: Sequence[Flag], pipeline: str | None = None) -> list[FlagRow]:
    """Return flags with what was said of them: open before cleared, the loudest, then the newest, first."""
    said = {(ack.key, ack.opened_ts): ack for ack in store.acks(pipeline)}
    rows = [
        FlagRow(flag=f, ack=said.get((f.key, f.opened_ts)), evidence=list(_evidence(f.evidence)))
        for f in found
    ]
    return sorted(
        rows,
        key=lambda r: (r.flag.cleared_ts is not None, LOUDNESS.index(r.flag.severity), -r.flag.opened_ts),
    )


def _evidence(evidence: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for name, value in evidence.items():
        if name == "changed" or value in (None, "", [], {}):
            continue  # the diff is shown as one
        shown = _shown(value)
        yield words.named(name), shown if len(shown) <= 300 else f"{shown[:299]}…"


def _shown(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return words.number(value)
    return json.dumps(value, ensure_ascii=False, default=str)


def find_row(desks: Desks, name: str, now: float) -> Mapping[str, Any] | None:
    """Return the row of one pipeline."""
    rows = views.pipelines_object(desks.store, desks.desk.verdicts(now), now)
    return next((row for row in rows if row["name"] == name), None)


def story(
    store: SqlStore,
    row: Mapping[str, Any],
    rules: InvalidationRules,
    now: float,
    charted: int = len(CHARTED),
) -> Story:
    """Return what happened to a pipeline."""
    name, config = str(row["name"]), row["config"]
    seen = store.configs_seen(name)
    change = last_change(seen, config, rules, _traffic(store, name, now))
    before, after = _hours(store, name, config, change, now)
    compared = figures.compare(before, after) if change else []
    worse = [one.name for one in compared if one.word == "worse"]
    shown = _steps(store, name, config, change, now)
    flags = flag_rows(store, store.flags(name), name)
    recent = row["configs"]
    total = sum(int(one["retrievals"]) for one in recent.values())
    on_new = int(recent[config]["retrievals"]) if config in recent else 0
    return Story(
        row=row,
        change=change,
        flags=flags,
        compared=compared,
        charts=list(_charts(*shown, change, worse, charted)),
        new_share=on_new / total if total else None,
        since_change=sum(w.get("retrievals") for w in after),
        before_retrievals=sum(w.get("retrievals") for w in before),
        way_back=_way_back(store, name, row, seen),
    )


def _traffic(store: SqlStore, name: str, now: float) -> Iterator[Window]:
    """Yield the windows of a month: hours, and the last day by minutes."""
    month, day = _hour(now - 30 * words.DAY), _hour(now - words.DAY)
    yield from store.hours(name, month, day)
    yield from store.windows(name, day, int(now // 60) + 1)


def _hours(
    store: SqlStore, name: str, config: str | None, change: ConfigChange | None, now: float
) -> tuple[list[Window], list[Window]]:
    """Return the hours of both configs: at most 7 days before a change, all since.

    The hour of the change is read by minutes, where they are still kept.
    """
    at = change.at if change else now - BEFORE_S
    other = change.before.record.config if change else None
    found = store.hours(name, _hour(at - BEFORE_S if change else at), int(now // 60) + 1)
    before = [w for w in found if w.config == other and w.minute * 60.0 <= at]
    minutes = store.windows(name, int(at // 60), _hour(at) + 60) if change else []
    after = [*minutes, *(w for w in found if w.minute >= _hour(at) + (60 if minutes else 0))]
    return before, [w for w in after if w.config == config]


def _hour(ts: float) -> int:
    return int(ts // 3600) * 60


def _steps(
    store: SqlStore, name: str, config: str | None, change: ConfigChange | None, now: float
) -> tuple[list[Window], list[Window], int]:
    """Return the windows that charts show, as long before a change as after it, and minutes of a step."""
    at = change.at if change else now - BEFORE_S
    reach = min(max(now - at, words.DAY), BEFORE_S)
    since = at - reach if change else at
    step = next((s for s in STEPS if (now - since) / 60 / s <= POINTS), STEPS[-1])
    read = store.windows if step < 60 else store.hours
    found = read(name, int(since // 60), int(now // 60) + 1)
    other = change.before.record.config if change else None
    before = [w for w in found if w.config == other and w.minute * 60.0 <= at]
    since = at - 60.0 * step if change else 0.0
    after = [w for w in found if w.config == config and w.minute * 60.0 > since]
    return before, after, step


def _charts(
    before: Sequence[Window],
    after: Sequence[Window],
    step: int,
    change: ConfigChange | None,
    wanted: Sequence[str],
    most: int,
) -> Iterator[Drawn]:
    """Yield charts of what was observed, the wanted measures first."""
    at = change.at if change else None
    order = sorted(CHARTED, key=lambda one: (one.name not in wanted, CHARTED.index(one)))
    for one in order:
        course = figures.course(before, after, one, step)
        svg = charts.draw(course, at, wide=most == 1)
        if svg is None or most == 0:
            continue
        most -= 1
        narrow = charts.draw(course, at) if most == 0 and svg is not None else None
        values = [
            (words.short_when(ts), side, one.shown(value))
            for side, points in (("before", course.before), ("after", course.after))
            for ts, value in points
            if value is not None
        ]
        yield Drawn(name=one.name, unit=_unit(one), svg=svg, narrow=narrow, values=values[-48:])


def _unit(one: Measure) -> str:
    if one.is_share:
        return f"share of {one.of} (%)"
    return one.of + (f" ({one.unit})" if one.unit else "")


def _way_back(
    store: SqlStore, name: str, row: Mapping[str, Any], seen: Sequence[ConfigSeen]
) -> tuple[ConfigSeen, TunedK] | None:
    """Return the newest other config whose basis has a tuned depth, where the one in charge has none."""
    if row["tuned"] is not None:
        return None
    tuned = {record.basis: record for record in store.tuned(name)}
    known = [one for one in seen if one.record.basis in tuned and one.record.basis != row["basis"]]
    best = max(known, key=lambda one: one.last_seen, default=None)
    return None if best is None else (best, tuned[best.record.basis])


def timeline(
    store: SqlStore, name: str, rules: InvalidationRules, last: ConfigChange | None = None
) -> list[Entry]:
    """Return what happened to a pipeline, newest first: configs, tuned depths, flags that went.

    `last` is how the config in charge came to run.
    """
    seen = store.configs_seen(name)
    entries = [*_config_entries(seen, rules), *_tuned_entries(store, name, seen)]
    if last is not None and last.returned:
        entries.append(_entry(last, f"An earlier config runs again: {last.after.record.config}"))
    for flag in store.flags(name, open_only=False)[-40:]:
        if flag.reason == "config_changed":
            continue  # told by the config itself
        entries.append(
            Entry(ts=flag.opened_ts, kind="flag-open", title=words.named(flag.reason), text=flag.message)
        )
    return sorted(entries, key=lambda entry: -entry.ts)[:60]


def _config_entries(seen: Sequence[ConfigSeen], rules: InvalidationRules) -> Iterator[Entry]:
    known = {one.record.config: one for one in seen}
    for one in seen:
        parent = known.get(one.parent or "")
        change = between(parent, one, one.first_seen, rules) if parent else None
        if change is None:
            text = "nothing is known of what ran before"
            yield Entry(ts=one.first_seen, kind="calm", title=f"First config: {one.record.config}", text=text)
            continue
        stays = "" if _ends(change) else ", its basis stays"
        yield _entry(change, f"Config changed{stays}: {one.record.config}")


def _entry(change: ConfigChange, title: str) -> Entry:
    text = ", ".join(c.path for c in change.weighty[:3]) or "only what does not matter for k"
    kind = "config" if _ends(change) else "calm"
    return Entry(ts=change.at, kind=kind, title=title, text=text, change=change)


def _ends(change: ConfigChange) -> bool:
    return any(c.effect == "invalidates" for c in change.changes)


def _tuned_entries(store: SqlStore, name: str, seen: Sequence[ConfigSeen]) -> Iterator[Entry]:
    for basis in dict.fromkeys(one.record.basis for one in seen):
        for record in store.tuned_history(name, basis):
            told = record.because or record.objective or "accepted"
            by = f" by {record.tuned_by}" if record.tuned_by else ""
            yield Entry(
                ts=record.tuned_at,
                kind="tuned",
                title=f"k = {record.context_k} accepted{by}",
                text=f"{told}, for basis {basis}",
            )
