"""Does the labelled set still speak for the traffic? A classifier tries to tell the two apart.

Questions of the traffic and of the labelled set, as tf-idf of their words, go to a logistic regression; equal
questions are always in the same fold. The area under the ROC curve of its out-of-fold scores is 1/2 where the
mixes are alike, and says by how much it can tell them apart where they are not. Labelled cases count with
their weight: a set drawn with known probabilities speaks for the traffic through its weights, however hard
its own questions are. The interval is a percentile bootstrap over questions. Source: classifier two-sample
tests, Lopez-Paz and Oquab, "Revisiting classifier two-sample tests" (ICLR 2017).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from resweep.domain.case import question_key

LEAST = 50  # questions of either side below which nothing is said
MOST = 2000  # of either side, evenly taken
FOLDS = 5
RESAMPLES = 500
ALIKE = 0.6  # an area whose whole interval lies above this is another mix
Numbers = np.typing.NDArray[np.float64]
Whole = np.typing.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """How well the traffic can be told from the labelled set: AUC with its 95 % interval.

    `words` are those that the traffic has more of, the heaviest first.
    """

    auc: float
    low: float
    high: float
    traffic: int
    labelled: int
    words: tuple[str, ...] = ()

    @property
    def stale(self) -> bool:
        """Whether the set does not speak for the traffic any more."""
        return self.low > ALIKE


def compare(
    traffic: Sequence[str], labelled: Sequence[str], weights: Sequence[float] | None = None, seed: int = 0
) -> Mix | None:
    """Return the mix of recent traffic against the labelled set; None for too few questions of either.

    `weights` are those of the labelled cases; equal where not given.
    """
    rng = np.random.default_rng(seed)
    t_pick, l_pick = _pick(len(traffic), rng), _pick(len(labelled), rng)
    if min(len(t_pick), len(l_pick)) < LEAST:
        return None
    texts = [traffic[i] for i in t_pick] + [labelled[i] for i in l_pick]
    is_traffic = np.array([1] * len(t_pick) + [0] * len(l_pick))
    given = np.array([1.0] * len(labelled) if weights is None else weights, dtype=np.float64)[l_pick]
    share = np.concatenate([np.full(len(t_pick), 1.0 / len(t_pick)), given / given.sum()])
    groups = np.unique([question_key(text) for text in texts], return_inverse=True)[1]
    scores, words = _scores(texts, is_traffic, share, groups)
    low, high = _interval(scores, is_traffic, share, groups, rng)
    return Mix(
        auc=_auc(scores, is_traffic, share),
        low=low,
        high=high,
        traffic=len(t_pick),
        labelled=len(l_pick),
        words=words,
    )


def _pick(n: int, rng: np.random.Generator) -> Whole:
    return np.arange(n) if n <= MOST else np.sort(rng.choice(n, MOST, replace=False))


def _scores(
    texts: Sequence[str],
    is_traffic: Whole,
    share: Numbers,
    groups: Whole,
) -> tuple[Numbers, tuple[str, ...]]:
    """Return out-of-fold scores, and the words that speak for the traffic over all folds."""
    # Loaded when it is needed: it takes a second, and most starts of an agent do not compare anything.
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold

    words = TfidfVectorizer(sublinear_tf=True, min_df=2)
    try:
        vectors = words.fit_transform(texts)
    except ValueError:  # no word comes twice
        return np.zeros(len(texts)), ()
    scores = np.zeros(len(texts))
    heavy = np.zeros(vectors.shape[1])
    for fit, hold in GroupKFold(n_splits=FOLDS).split(vectors, is_traffic, groups):
        model = LogisticRegression(C=1.0, max_iter=200)
        model.fit(vectors[fit], is_traffic[fit], sample_weight=share[fit] * len(texts))
        scores[hold] = model.decision_function(vectors[hold])
        heavy += model.coef_[0]
    names = words.get_feature_names_out()
    best = np.argsort(-heavy, kind="stable")[:5]
    return scores, tuple(str(names[i]) for i in best if heavy[i] > 0)


def _auc(scores: Numbers, is_traffic: Whole, share: Numbers) -> float:
    """Return the weighted area: P(score of traffic > score of the set) + half of P(equal)."""
    order = np.argsort(scores, kind="stable")
    values, starts = np.unique(scores[order], return_index=True)
    positive = np.add.reduceat((share * is_traffic)[order], starts)
    negative = np.add.reduceat((share * (1 - is_traffic))[order], starts)
    below = np.concatenate([[0.0], np.cumsum(negative)[:-1]])
    total = positive.sum() * negative.sum()
    return float((positive * (below + negative / 2)).sum() / total) if total and len(values) else 0.5


def _interval(
    scores: Numbers,
    is_traffic: Whole,
    share: Numbers,
    groups: Whole,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Return the 95 % interval over resampled questions: repeats of one come and go together."""
    n = int(groups.max()) + 1
    areas = [
        _auc(scores, is_traffic, share * np.bincount(rng.integers(0, n, n), minlength=n)[groups])
        for _ in range(RESAMPLES)
    ]
    low, high = np.quantile(areas, (0.025, 0.975))
    return float(low), float(high)
