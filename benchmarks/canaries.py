"""How often canaries are wrong, and how soon right: years of hourly runs with known changes.

    python benchmarks/canaries.py [--years 3] [--seed 1]

Answers come from random vectors; every night a share of the corpus is replaced, exponentially distributed,
so that some nights change several times the usual. Embedders jitter by 1e-4 a dimension, and one call in 20
gives a variant at a cosine of 0.9999. A change is made once; runs follow at the interval that the canaries
ask for. Printed as one JSON object.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator

import numpy as np

from resweep.detect.canary import answers, embedder
from resweep.detect.canary.book import System, findings
from resweep.domain.event import Hit

HOUR, CONFIRM = 3600.0, 300.0
Array = np.ndarray[tuple[int, int], np.dtype[np.float64]]


class Index:
    """A corpus under an embedder: `answers` as the live retriever gives them."""

    def __init__(self, seed: int, questions: int = 30, passages: int = 600, k: int = 8) -> None:
        self.rng = np.random.default_rng(seed)
        self.k = k
        self.passages = self.rng.normal(size=(passages, 24))
        self.queries = self.rng.normal(size=(questions, 24))
        self.ids = list(range(passages))
        self.fresh = passages

    def night(self, churn: float) -> None:
        """Replace some passages by new ones."""
        share = min(0.3, self.rng.exponential(churn))
        for at in self.rng.choice(len(self.ids), int(share * len(self.ids)), replace=False):
            self.passages[at] = self.rng.normal(size=24)
            self.ids[at] = self.fresh = self.fresh + 1

    def answers(self) -> dict[str, tuple[Hit, ...]]:
        """Return the answers of now."""
        scores = self.queries @ self.passages.T
        best = np.argsort(-scores, axis=1)[:, : self.k]
        return {
            f"q{i}": tuple(
                Hit(
                    f"p{self.ids[j]}",
                    float(scores[i, j]),
                    source=f"s{self.ids[j] % 60}",
                    tokens=80 + self.ids[j] % 90,
                )
                for j in row
            )
            for i, row in enumerate(best)
        }


def year(seed: int, churn: float, days: int = 365) -> int:
    """Return how many flags opened in a year without a change."""
    index, system, opened, held = Index(seed), System(pipeline="b", basis="b"), 0, False
    for hour in range(days * 24):
        if hour % 24 == 3:
            index.night(churn)
        now = hour * HOUR
        system.run = answers.look(system.answers, index.answers(), now)
        found = [f for f in findings(system) if f.severity != "notice"]
        opened += bool(found) and not held
        held = bool(found)
    return opened


def runs_to_flag(seed: int, churn: float, share: float) -> tuple[int, tuple[str, ...]] | None:
    """Return the runs from a change of that share of the query vectors to the flag, and the components."""
    index, system = Index(seed), System(pipeline="b", basis="b")
    for hour in range(14 * 24):
        if hour % 24 == 3:
            index.night(churn)
        system.run = answers.look(system.answers, index.answers(), hour * HOUR)
    changed = index.rng.random(len(index.queries)) < share
    index.queries[changed] = index.rng.normal(size=(int(changed.sum()), 24))
    if system.answers.gate.is_open:
        return None  # not quiet to begin with
    for run in range(1, 25):
        system.run = answers.look(system.answers, index.answers(), 14 * 24 * HOUR + run * CONFIRM)
        found = [f for f in findings(system) if f.severity != "notice"]
        if found:
            return run, found[0].components
    return None


def embedders(seed: int, days: int = 365) -> Iterator[tuple[str, object]]:
    """Yield false flags of a year of jitter, and runs to a flag by the mean cosine of another model."""
    rng = np.random.default_rng(seed)
    base = unit(rng.normal(size=(20, 256)))
    state, false = started(base), 0
    for hour in range(1, days * 24):
        embedder.look(state, vectors(jittered(base, rng)), hour * HOUR)
        false += state.present != state.reference
    yield "false_flags", false
    for cosine in (0.9999, 0.999, 0.998, 0.99, 0.9, 0.0):
        state = started(base)
        for hour in range(1, 6):
            embedder.look(state, vectors(jittered(base, rng)), hour * HOUR)
        noise = unit(rng.normal(size=base.shape))
        other = unit(cosine * base + np.sqrt(1 - cosine**2) * noise)
        flagged = None
        for run in range(1, 13):
            embedder.look(state, vectors(jittered(other, rng)), 10 * HOUR + run * CONFIRM)
            if state.present != state.reference:
                flagged = run
                break
        yield f"runs_at_cosine_{cosine}", flagged


def unit(matrix: Array) -> Array:
    """Return rows of length 1."""
    found: Array = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    return found


def jittered(base: Array, rng: np.random.Generator) -> Array:
    """Return vectors as another call gives them."""
    noisy = base + rng.normal(scale=1e-4, size=base.shape)
    odd = rng.random(len(base)) < 0.05
    other = unit(rng.normal(size=base.shape))
    return unit(np.where(odd[:, None], 0.9999 * noisy + np.sqrt(1 - 0.9999**2) * other, noisy))


def vectors(matrix: Array) -> dict[str, list[float]]:
    """Return rows as vectors by text id."""
    return {f"t{i}": row.tolist() for i, row in enumerate(matrix)}


def started(base: Array) -> embedder.EmbedderState:
    """Return a state after its first run."""
    state = embedder.EmbedderState()
    embedder.look(state, vectors(base), 0.0)
    return state


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--years", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    began, seeds = time.process_time(), range(given.seed, given.seed + given.years)
    churns = (0.0, 0.001, 0.003, 0.01)  # of the passages: about 2, 5 and 15 % of the answers of a night
    shown: dict[str, object] = {
        "false_flags": {f"churn {c}": sum(year(s, c) for s in seeds) for c in churns},
        "years": given.years,
    }
    for share in (0.15, 0.3, 0.7, 1.0):
        found = [runs_to_flag(s, 0.001, share) for s in range(20)]
        runs = sorted(one[0] for one in found if one is not None)
        shown[f"changed {share}"] = {
            "found": len(runs),
            "of": 20,
            "median_runs": runs[len(runs) // 2] if runs else None,
        }
    shown["embedder"] = dict(embedders(given.seed))
    shown["cpu_s"] = round(time.process_time() - began, 1)
    print(json.dumps(shown, indent=1))


if __name__ == "__main__":
    main()
