"""One hour of a pipeline's traffic: its plan, and what is drawn under it.

Both are functions of the hour's pool and of what was known before the hour. So an agent that decides again,
another replica and a replay all come to the same cases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from resweep.domain.case import Draw
from resweep.domain.sampling import Plan, Pooled, Reference, chance, decide, strata_of
from resweep.domain.snapshot import STRATA
from resweep.label.novelty import Embedder, Novelty
from resweep.label.planning import counted, opened, rate
from resweep.label.settings import LabelSettings

LOOKED_AT = 300  # questions of an hour from which the share of novel ones is estimated
FAREST = 0.9  # quantile of the hour's own distances from which a question is novel
LEAST_FAR = 0.3


class Known(NamedTuple):
    """What was known before an hour: other plans, references by config, and the questions of the set.

    `lost` are the keys of questions whose canary was lost.
    """

    plans: Sequence[Plan] = ()
    references: Mapping[str, Reference] = {}
    questions: Sequence[str] = ()
    lost: Collection[str] = ()


class Sampler:
    """Plans hours and draws from them."""

    def __init__(self, settings: LabelSettings | None = None, embed: Embedder | None = None) -> None:
        self.settings = settings or LabelSettings()
        self._embed = embed
        self._novelty: dict[str, tuple[float, int, Novelty]] = {}  # by pipeline: that of the last hour

    def plan(
        self, pipeline: str, since: float, pool: Sequence[Pooled], known: Known, held: Plan | None = None
    ) -> Plan:
        """Return the plan of the hour that begins at `since` (unix s), under the name of its content.

        `held` is the one published before, whose shares stand.
        """
        first = held or opened(pipeline, since, known.plans, self.settings)
        plan = msgspec.structs.replace(
            first, id="", references=dict(known.references), lost=tuple(sorted(known.lost)), novel=()
        )
        counts: Counter[str] = Counter()
        for one in pool:
            counts.update(strata_of(one, plan))
        return self._with_novel(plan, pool, dict(counts), known).named()

    def _with_novel(self, plan: Plan, pool: Sequence[Pooled], counts: dict[str, float], known: Known) -> Plan:
        """Settle what is novel. How much is estimated on a subset that has nothing to do with u."""
        texts = [one for one in pool if one.query]
        novelty = self._novel(plan, known)
        part = min(1.0, LOOKED_AT / max(1, len(texts)))
        looked = [one for one in texts if chance(one.id, f"{plan.seed}/novel") < part]
        if not novelty.ready or not looked:
            return counted(plan, {s: float(counts.get(s, 0)) for s in STRATA})
        distances = novelty.distances([_text(one) for one in looked])
        far = max(LEAST_FAR, float(np.quantile(distances, FAREST)))
        counts["novel"] = float((distances >= far).sum()) / part
        below = rate(plan.shares.get("novel", 0.0), counts["novel"], plan.forecast.get("novel", 0.0))
        near = [one for one in texts if chance(one.id, plan.seed) < below]
        novel = np.flatnonzero(novelty.distances([_text(one) for one in near]) >= far)
        plan = msgspec.structs.replace(plan, far=far, novel=tuple(sorted(near[int(i)].id for i in novel)))
        return counted(plan, {s: float(counts.get(s, 0)) for s in STRATA})

    def _novel(self, plan: Plan, known: Known) -> Novelty:
        since, n, novelty = self._novelty.get(plan.pipeline, (0.0, -1, None))
        if novelty is None or (since, n) != (plan.since, len(known.questions)):
            novelty = Novelty(known.questions, self._embed)
            self._novelty[plan.pipeline] = (plan.since, len(known.questions), novelty)
        return novelty

    def draws(self, pool: Iterable[Pooled], plan: Plan) -> list[tuple[Pooled, Draw]]:
        """Return the events that a plan draws from the hour's pool, in time order."""
        drawn = []
        for one in sorted(pool, key=lambda one: (one.ts, one.id)):
            decision = decide(one, plan)
            if decision is not None:
                drawn.append((one, _draw(one, plan, decision.p, decision.stratum, decision.strata)))
        return drawn


def _text(one: Pooled) -> str:
    return one.query or ""


def _draw(one: Pooled, plan: Plan, p: float, stratum: str, strata: tuple[str, ...]) -> Draw:
    return Draw(
        event_id=one.id,
        ts=one.ts,
        p=p,
        plan=plan.id,
        stratum=stratum,
        strata=strata,
        config=one.config,
        user_key=one.user_key,
    )
