"""Figures of the sweep: seven measures at every k, beside the tools people trust, and the bootstrap.

    python benchmarks/sweep.py [--json] [--large 100000] [--skip ranx,...]

Everything starts from lists of text ids and judgments by id, and ends with a mean of each measure at every
k = 1..40. Ratios are of one run on one machine; agreement is the largest difference of any shared mean.
Peers are run on the small set; pytrec_eval, the fastest of them, on a tenth of the large one as well.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from resweep.domain.measures import SEVEN, measure, rank_table
from resweep.domain.resample import best_set

DEPTH, DEEPEST = 100, 40
KS = range(1, DEEPEST + 1)
SMALL = 400
HOLD = {"small_ms": 10.0, "large_s": 3.0, "bootstrap_s": 1.5, "pytrec_ratio": 10.0, "agreement": 1e-9}

Run = dict[str, list[str]]
Qrels = dict[str, dict[str, int]]
Means = dict[str, list[float]]


@dataclass(frozen=True)
class Peer:
    """A tool: how it is called, and what it calls our measures."""

    module: str
    call: Callable[[Run, Qrels], Means]


def corpus(cases: int, seed: int = 0) -> tuple[Run, Qrels]:
    """Return lists of 100 distinct ids, and 2 to 6 judgments each, most of them in the list."""
    rng = random.Random(seed)
    ids = [f"doc{i}" for i in range(20_000)]
    run: Run = {}
    qrels: Qrels = {}
    for i in range(cases):
        ranking = rng.sample(ids, DEPTH)
        places = {min(int(rng.expovariate(0.1)), DEPTH - 1) for _ in range(rng.randint(1, 5))}
        run[f"q{i}"] = ranking
        qrels[f"q{i}"] = {ranking[place]: 1 for place in places} | {rng.choice(ids): 1}
    return run, qrels


def ours(run: Run, qrels: Qrels) -> Means:
    """Return our means; per-case values are kept on the way."""
    values = measure(rank_table(list(run.values()), [qrels[q] for q in run]), KS, SEVEN).values
    return {name: array.mean(axis=0).tolist() for name, array in values.items()}


def scored(run: Run) -> dict[str, dict[str, float]]:
    """Return scores that repeat the positions."""
    return {q: {d: float(len(ids) - i) for i, d in enumerate(ids)} for q, ids in run.items()}


def pytrec_eval(run: Run, qrels: Qrels) -> Means:
    """Return what trec_eval's own code says."""
    import pytrec_eval as tool

    cuts = ",".join(map(str, KS))
    names = {"recall": "recall", "P": "precision", "map_cut": "ap", "ndcg_cut": "ndcg"}
    found = tool.RelevanceEvaluator(qrels, {f"{theirs}.{cuts}" for theirs in names}).evaluate(scored(run))
    return {
        name: [float(np.mean([found[q][f"{theirs}_{k}"] for q in run])) for k in KS]
        for theirs, name in names.items()
    }


def ranx(run: Run, qrels: Qrels) -> Means:
    """Return what ranx says; the first call compiles."""
    import ranx as tool

    names = {"recall": "recall", "precision": "precision", "map": "ap", "ndcg": "ndcg", "mrr": "mrr"}
    metrics = [f"{theirs}@{k}" for theirs in names for k in KS]
    found: Any = tool.evaluate(tool.Qrels(qrels), tool.Run(scored(run)), metrics)
    return {name: [float(found[f"{theirs}@{k}"]) for k in KS] for theirs, name in names.items()}


def ir_measures(run: Run, qrels: Qrels) -> Means:
    """Return what ir-measures says."""
    import ir_measures as tool

    names = {"R": "recall", "P": "precision", "AP": "ap", "nDCG": "ndcg", "RR": "mrr"}
    kinds = {(theirs, k): getattr(tool, theirs) @ k for theirs in names for k in KS}
    found = tool.calc_aggregate(list(kinds.values()), qrels, scored(run))
    return {name: [float(found[kinds[theirs, k]]) for k in KS] for theirs, name in names.items()}


PEERS = {
    "pytrec_eval": Peer("pytrec_eval", pytrec_eval),
    "ranx": Peer("ranx", ranx),
    "ir_measures": Peer("ir_measures", ir_measures),
}


def seconds(action: Callable[[], object], rounds: int) -> float:
    """Return the shortest time of an action: what the machine can do when nobody else wants it."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def difference(one: Means, other: Means) -> float:
    """Return the largest difference of any mean that both give."""
    shared = one.keys() & other.keys()
    return max(abs(a - b) for name in shared for a, b in zip(one[name], other[name], strict=True))


def peers(run: Run, qrels: Qrels, skip: set[str]) -> dict[str, dict[str, float | str]]:
    """Return each installed peer's time, its ratio to ours, and how far it is from ours."""
    mine, own = ours(run, qrels), seconds(lambda: ours(run, qrels), 40)
    rows: dict[str, dict[str, float | str]] = {}
    for name, peer in PEERS.items():
        if name in skip or importlib.util.find_spec(peer.module) is None:
            rows[name] = {"state": "skipped" if name in skip else "not installed"}
            continue
        first = time.perf_counter()
        theirs = peer.call(run, qrels)
        first = time.perf_counter() - first
        spent = seconds(lambda peer=peer: peer.call(run, qrels), 3)  # type: ignore[misc]
        rows[name] = {
            "first_call_s": first,
            "ms": 1000 * spent,
            "ratio": spent / own,
            "agreement": difference(mine, theirs),
        }
    return rows


def bootstrap(resamples: int = 10_000) -> tuple[float, bool]:
    """Return the time of the best set at 400 cases and 40 depths, and whether a second run is equal."""
    run, qrels = corpus(SMALL, seed=1)
    values = measure(rank_table(list(run.values()), list(qrels.values())), KS, ["ndcg"]).values["ndcg"]
    spent = seconds(lambda: best_set(values, resamples=resamples), 3)
    one, two = (best_set(values, resamples=resamples).critical for _ in range(2))
    return spent, bool(np.array_equal(one, two))


def figures(large: int, skip: set[str]) -> dict[str, Any]:
    """Return every figure of the sweep."""
    small = corpus(SMALL)
    first = time.perf_counter()
    ours(*small)
    first = time.perf_counter() - first
    found: dict[str, Any] = {
        "small": {"cases": SMALL, "first_call_s": first, "ms": 1000 * seconds(lambda: ours(*small), 40)},
        "peers": peers(*small, skip=skip),
    }
    many = corpus(large, seed=2)
    found["large"] = {"cases": large, "s": seconds(lambda: ours(*many), 3)}
    if importlib.util.find_spec("pytrec_eval") is not None and "pytrec_eval" not in skip:
        part = {q: many[0][q] for q in list(many[0])[: max(1, large // 10)]}
        judged = {q: many[1][q] for q in part}
        spent = seconds(lambda: pytrec_eval(part, judged), 1)
        found["large"]["pytrec_eval_ratio"] = spent / seconds(lambda: ours(part, judged), 3)
    spent, equal = bootstrap()
    found["bootstrap"] = {"resamples": 10_000, "cases": SMALL, "depths": DEEPEST, "s": spent, "equal": equal}
    found["held"] = held(found)
    return found


def held(found: Mapping[str, Any]) -> dict[str, bool]:
    """Return which figures hold; a peer that is not installed holds nothing up."""
    measured = [row for row in found["peers"].values() if "ratio" in row]
    trec = found["peers"]["pytrec_eval"].get("ratio")
    return {
        "small": found["small"]["ms"] <= HOLD["small_ms"],
        "large": found["large"]["s"] <= HOLD["large_s"],
        "bootstrap": found["bootstrap"]["s"] <= HOLD["bootstrap_s"] and found["bootstrap"]["equal"],
        "pytrec_eval": trec is None or trec >= HOLD["pytrec_ratio"],
        "agreement": all(row["agreement"] <= HOLD["agreement"] for row in measured),
    }


def table(found: Mapping[str, Any]) -> str:
    """Return the figures as a table."""
    small, large, drawn = found["small"], found["large"], found["bootstrap"]
    rows = [f"{'resweep, 400 cases, k = 1..40, 7 measures':<52}{small['ms']:>10.1f} ms  (hold 10)"]
    for name, row in found["peers"].items():
        told = row.get("state") or (
            f"{row['ms']:>10.1f} ms  {row['ratio']:.0f} x ours, first call {row['first_call_s']:.1f} s, "
            f"agrees to {row['agreement']:.0e}"
        )
        rows.append(f"{name + ', the same':<52}{told}")
    ratio = large.get("pytrec_eval_ratio")
    beside = f", pytrec_eval {ratio:.0f} x on a tenth" if ratio else ""
    rows.append(
        f"{'resweep, ' + format(large['cases'], ',') + ' cases':<52}{large['s']:>10.2f} s   (hold 3{beside})"
    )
    rows.append(f"{'best set, 10,000 resamples, 400 cases, 40 depths':<52}{drawn['s']:>10.2f} s   (hold 1.5)")
    broken = [name for name, ok in found["held"].items() if not ok]
    rows.append(f"does not hold: {', '.join(broken)}" if broken else "all figures hold")
    return "\n".join(rows)


def main() -> int:
    """Print the figures; exit 1 where one does not hold."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--large", type=int, default=100_000, help="cases of the large set")
    parser.add_argument("--skip", default="", help="peers to leave out, e.g. ranx,ir_measures")
    asked = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = figures(asked.large, set(filter(None, asked.skip.split(","))))
    print(json.dumps(found, indent=1) if asked.json else table(found))
    return 0 if all(found["held"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
