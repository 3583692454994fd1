"""How well passive detection tells change from no change, beside the tests people use today.

    python benchmarks/detect.py quiet --days 365 --seeds 1        false flags on traffic without change
    python benchmarks/detect.py found                             delay and cause of simulated changes
    python benchmarks/detect.py streams --at 12000 FILE.jsonl …   recorded events with a change at an event

Peers watch the top score in hourly windows: KS, PSI and Wasserstein against the first part of the
stream, ADWIN event by event; at their defaults, and with the threshold raised to their own highest value
before the change.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Iterator
from math import inf
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
from scipy import stats

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[1] / "agent")]

from benchmarks.traffic.calendar import Calendar  # noqa: E402 - the paths above make this checkout importable
from benchmarks.traffic.scenarios import APART, TUNING  # noqa: E402
from benchmarks.traffic.world import START, Scenario, World  # noqa: E402
from resweep.detect.passive.engine import PassiveEngine  # noqa: E402
from resweep.domain.event import Hit, RetrievalEvent  # noqa: E402
from resweep.domain.sample import query_key  # noqa: E402
from resweep.domain.verdict import Flag  # noqa: E402

SALT = b"bench"
QUARTER_DAYS = 91.3
# name, change, size, days before, share of new questions, causes accepted, most queries allowed
CHANGES = (
    ("embedder, 65 % repeats", "embedder", 1.0, 3, 0.35, {"embedder"}, 250),
    ("embedder, 20 % repeats", "embedder", 1.0, 3, 0.80, {"embedder"}, 600),
    ("embedder, 5 % repeats", "embedder", 1.0, 3, 0.95, {"embedder"}, 3000),
    ("chunker, 65 % repeats", "chunker", 1.0, 3, 0.35, {"chunker"}, 250),
    ("filter on 30 % of sources", "filter", 0.3, 3, 0.35, {"filter", "corpus"}, 250),
    ("empties 10 times as many", "empty", 10.0, 16, 0.35, {"outcome"}, 2000),
    ("level +0.8 SD, no repeats", "level", 0.8, 16, 1.0, {"embedder", "reranker"}, 2000),
    ("level +0.3 SD, no repeats", "level", 0.3, 16, 1.0, {"embedder", "reranker"}, 12000),
    ("topic +2 log-odds", "mix", 2.0, 16, 1.0, {"traffic"}, 12000),
)


class Run(NamedTuple):
    """One replay: flags, events, CPU seconds of the engine, hourly top scores."""

    flags: list[Flag]
    events: int
    cpu_s: float
    tops: list[tuple[int, float, float]]  # event number, hour, top score


def replay(events: Iterable[RetrievalEvent]) -> Run:
    """Run the engine over events; its CPU time alone is counted."""
    engine, tops, spent, last = PassiveEngine("p", salt=SALT), [], 0.0, 0.0
    batch: list[tuple[int, RetrievalEvent]] = []
    number = -1
    for number, event in enumerate(events):
        batch.append((number, event))
        if event.hits and event.hits[0].score is not None:
            tops.append((number, event.ts / 3600, event.hits[0].score))
        if len(batch) == 2000:
            spent += feed(engine, batch)
            last, batch = batch[-1][1].ts, []
    spent += feed(engine, batch)
    engine.advance((batch[-1][1].ts if batch else last) + 120)
    flags = {change.flag.key: change.flag for change in engine.drain()}
    return Run(list(flags.values()), number + 1, spent, tops)


def feed(engine: PassiveEngine, batch: list[tuple[int, RetrievalEvent]]) -> float:
    """Feed a batch and return the CPU seconds it took."""
    start = time.process_time()
    for number, event in batch:
        engine.observe(number, event)
    return time.process_time() - start


# -- peers ------------------------------------------------------------------------------------------------


def psi(reference: np.ndarray, window: np.ndarray) -> float:
    """Population stability index over ten quantile bins."""
    edges = np.unique(np.quantile(reference, np.linspace(0, 1, 11)))[1:-1]
    counts = [np.bincount(np.searchsorted(edges, x), minlength=len(edges) + 1) for x in (reference, window)]
    p, q = (np.maximum(c / c.sum(), 1e-4) for c in counts)
    return float(((q - p) * np.log(q / p)).sum())


PEERS = {
    "KS": (lambda a, b: -np.log10(max(stats.ks_2samp(a, b).pvalue, 1e-300)), -np.log10(0.05)),
    "PSI": (psi, 0.2),
    "Wasserstein/SD": (lambda a, b: stats.wasserstein_distance(a, b) / (a.std() or 1.0), 0.1),
}


def peers(tops: list[tuple[int, float, float]], change: int) -> dict[str, tuple[int | None, int]]:
    """Return per peer and threshold: events until the first alarm after the change, alarming hours before."""
    numbers, hours, scores = (np.array(column) for column in zip(*tops, strict=True))
    before = numbers < change
    reference = scores[before][: before.sum() // 2]
    hour = hours.astype(int)
    out: dict[str, tuple[int | None, int]] = {}
    for name, (distance, default) in PEERS.items():
        values = [
            (int(numbers[hour == h][-1]), distance(reference, scores[hour == h]))
            for h in np.unique(hour[len(reference) :])
            if (hour == h).sum() >= 20
        ]
        own = max((v for n, v in values if n < change), default=inf)
        for label, threshold in (("default", default), ("self-fitted", own)):
            after = [n - change for n, v in values if n >= change and v > threshold]
            out[f"{name} {label}"] = (
                min(after, default=None),
                sum(n < change and v > threshold for n, v in values),
            )
    out["ADWIN default"] = adwin(tops, change)
    return out


def adwin(tops: list[tuple[int, float, float]], change: int) -> tuple[int | None, int]:
    """ADWIN at delta 0.002, event by event, where river is installed."""
    try:
        from river.drift import ADWIN
    except ImportError:
        return None, -1
    detector, found, early = ADWIN(), None, 0
    for number, _, score in tops:
        detector.update(score)
        if detector.drift_detected:
            if number < change:
                early += 1
            elif found is None:
                found = number - change
    return found, early


# -- reports ----------------------------------------------------------------------------------------------


def quiet(days: int, seeds: range, only: str | None) -> None:
    """Print false flags on traffic without change, the generators kept apart from tuning marked."""
    total_days = false = 0
    for scenario in TUNING + APART:
        if only not in (None, scenario.name):
            continue
        for seed in seeds:
            run = replay(World(scenario, seed).events(days))
            bad = [f for f in run.flags if f.severity != "notice"]
            kind = "apart" if scenario in APART else "tuning"
            cost = 1e6 * run.cpu_s / run.events
            row = f"{scenario.name:18s} {kind:6s} seed {seed} {run.events:8d} events {cost:6.1f} s/M"
            print(f"{row}  warnings {len(bad)}  notices {len(run.flags) - len(bad)}", flush=True)
            for flag in bad:
                print(f"    {flag.reason} {','.join(flag.components)}: {flag.message}")
            if scenario in APART:
                total_days, false = total_days + days, false + len(bad)
    if total_days:
        low = stats.chi2.ppf(0.05, 2 * false) / 2 if false else 0.0
        high = stats.chi2.ppf(0.95, 2 * false + 2) / 2
        per = QUARTER_DAYS / total_days
        print(
            f"apart: {false} in {total_days} days: {false * per:.2f} a quarter "
            f"({low * per:.2f} to {high * per:.2f})"
        )


def found(seeds: range, only: str | None) -> None:
    """Print delay, cause and peers for each simulated change at 1,000 calls an hour and more."""
    for name, change, size, days, fresh, causes, allowed in CHANGES:
        if only is not None and only not in name:
            continue
        for seed in seeds:
            base = Scenario(name=name, fresh=fresh, calendar=Calendar(rate=1000, noise=0.1), anonymous=False)
            at = days * 24 + 10
            world = World(base.changed(change, size, at), seed)
            events = list(world.events(days + 1))
            onset = next(i for i, e in enumerate(events) if e.ts >= START + at * 3600)
            report(name, replay(events[: onset + 14_000]), onset, causes, allowed)


def report(name: str, run: Run, change: int, causes: set[str], allowed: int) -> None:
    """Print one line for a run with a change, and one for the peers."""
    told = [f for f in run.flags if f.opened_at_event is not None and f.opened_at_event >= change]
    early = [f for f in run.flags if f not in told and f.severity != "notice"]
    hit = next((f for f in told if f.reason in ("silent_change", "traffic_changed", "quality_drop")), None)
    if hit is None:
        print(f"{name:28s} MISSED ({allowed} allowed)  early {len(early)}", flush=True)
    else:
        assert hit.opened_at_event is not None
        delay = hit.opened_at_event - change
        right = (
            "" if not causes else "right" if causes & set(hit.components) else "WRONG"
        )  # a file says no cause
        cost = 1e6 * run.cpu_s / run.events
        print(
            f"{name:28s} {delay:6d} events ({allowed} allowed) by {hit.layer}, {','.join(hit.components)} "
            f"{right}  early {len(early)}  {cost:.1f} s/M",
            flush=True,
        )
    for peer, (delay, before) in peers(run.tops, change).items():
        print(f"    {peer:24s} {'missed' if delay is None else delay:>8}  alarming before: {before}")


def read(path: Path) -> Iterator[RetrievalEvent]:
    """Yield the events of a `resweep.event/1` file."""
    for line in path.open(encoding="utf-8"):
        row = json.loads(line)
        if row.get("type") != "event":
            continue
        hits = tuple(
            Hit(
                h["id"],
                h.get("score"),
                source=h.get("source"),
                tokens=h.get("tokens"),
                text_hash=h.get("text_hash"),
            )
            for h in row["hits"]
        )
        query = row.get("query")
        key = None if query is None else query_key(query, row.get("filters"), SALT)
        asked = row.get("asked")
        returned = row.get("returned", len(hits) if asked is None else min(asked, len(hits)))
        latency = row.get("latency_s")
        yield RetrievalEvent(
            row["id"],
            row["ts"],
            row["pipeline"],
            "0" * 12,
            asked,
            returned,
            hits,
            query,
            key,
            latency_s=latency,
        )


def streams(paths: list[Path], at: int) -> None:
    """Print delay and components for recorded streams with a change at an event."""
    delays = []
    for path in paths:
        run = replay(read(path))
        report(path.stem, run, at, set(), 0)
        opened = [f.opened_at_event for f in run.flags if f.opened_at_event is not None]
        delays += [n - at for n in opened if n >= at][:1]
    if delays:
        print(f"median delay {median(delays)} events over {len(delays)} of {len(paths)} streams")


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("quiet", "found", "streams"))
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--only", help="one scenario or change, by name")
    parser.add_argument("--at", type=int, default=12_000, help="number of the first event after the change")
    args = parser.parse_intermixed_args()
    seeds = range(args.seed, args.seed + args.seeds)
    if args.what == "quiet":
        quiet(args.days, seeds, args.only)
    elif args.what == "found":
        found(seeds, args.only)
    else:
        streams(args.files, args.at)


if __name__ == "__main__":
    main()
