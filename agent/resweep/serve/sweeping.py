"""A sweep put together from what the command is given: cases, a retriever or recorded lists, a config."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from resweep.domain.errors import InputError, UsageError
from resweep.domain.fingerprint import fingerprint
from resweep.domain.invalidation import InvalidationRules
from resweep.serve.checking import read_config
from resweep.serve.live import Live
from resweep.serve.named import load_object, look
from resweep.settings import SweepSection
from resweep.sweep.answered import Checking
from resweep.sweep.answers import MEASURED, Answering
from resweep.sweep.cache import Kept
from resweep.sweep.calls import Policy, Watcher
from resweep.sweep.caselines import case_of
from resweep.sweep.constraints import QUANTITIES, named_in, parse_constraint
from resweep.sweep.engine import Sweep
from resweep.sweep.evidence import ANSWER_MEASURES, USEFULNESS
from resweep.sweep.labelled import smoke_cases
from resweep.sweep.lists import Case
from resweep.sweep.recorded import load_cases
from resweep.sweep.rules import parse_rule
from resweep.sweep.runner import Estimate, Target, Wanted, estimate_calls, sweep_live
from resweep.sweep.settings import Looks, SweepSettings
from resweep.sweep.superseded import Superseded, with_superseded
from resweep.sweep.trec import read_queries
from resweep.sweep.usefulness import Weighing

if TYPE_CHECKING:
    from resweep.serve.access import Access

HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What was swept, by its hashes. `document` is the config by its parts, `declared` if it was said."""

    pipeline: str | None
    config_hash: str | None
    basis_hash: str | None
    document: Mapping[str, Any]
    declared: bool


def identity_of(config: Path | None, pipeline: str | None, rules: InvalidationRules) -> Identity | None:
    """Return the identity in a config file, None without one.

    Raises UsageError where the file describes another pipeline, InputError where it cannot be read.
    """
    if config is None:
        return None
    described = read_config(config)
    if pipeline not in (None, described.pipeline):
        raise UsageError(f"{config} describes {described.pipeline!r}; got {pipeline!r}: name that pipeline")
    known = fingerprint(described.config, rules=rules)
    return Identity(
        pipeline=described.pipeline,
        config_hash=known.config_hash,
        basis_hash=known.basis_hash,
        document=known.document,
        declared=True,
    )


def introspected(retriever: Any, pipeline: str | None) -> Identity:
    """Return the identity that a live retriever shows by itself."""
    record = look(retriever).config
    return Identity(
        pipeline=pipeline,
        config_hash=record.config,
        basis_hash=record.basis,
        document=record.document,
        declared=False,
    )


@contextmanager
def off_the_record() -> Iterator[None]:
    """Let nothing retrieved meanwhile be counted as traffic, also where the user's own code watches it."""
    before = os.environ.get("RESWEEP_SINK")
    os.environ["RESWEEP_SINK"] = "none"
    try:
        yield
    finally:
        if before is None:
            del os.environ["RESWEEP_SINK"]
        else:
            os.environ["RESWEEP_SINK"] = before


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSource:
    """Where the labelled cases are: `queries` holds their texts where the judgments hold none."""

    path: Path
    queries: Path | None = None
    smoke: int | None = None


def cases_from(source: CaseSource) -> tuple[list[Case], list[str]]:
    """Return the cases, and notes on lines that take no part. Raises InputError, UsageError."""
    cases, left_out = load_cases(source.path)
    if source.queries is not None:
        texts = read_queries(source.queries)
        cases = [replace(case, query=case.query or texts.get(case.case_id)) for case in cases]
    if left_out and not cases:
        first = left_out[0]
        raise InputError(
            f"{source.path}: none of {len(left_out)} cases can be used; line {first.line}: {first.reason}"
        )
    notes = [f"line {line.line} of {source.path} takes no part: {line.reason}" for line in left_out]
    if source.smoke is not None:
        whole = len(cases)
        cases = smoke_cases(cases, source.smoke)
        notes.append(f"a smoke set: {len(cases)} of {whole} cases, the same each time, weighted to them all")
    return cases, notes


def labelled_by(agent: Access, pipeline: str) -> tuple[list[Case], list[str]]:
    """Return the cases an agent holds for a pipeline, and notes. Raises UsageError where none is labelled."""
    cases: list[Case] = []
    left_out: dict[str, int] = {}
    for raw in _case_pages(agent, pipeline):
        try:
            cases.append(case_of(raw["case"]))
        except InputError as error:
            reason = str(error).partition("; got")[0]
            left_out[reason] = left_out.get(reason, 0) + 1
    if not any(case.kind != "unjudged" for case in cases):
        raise UsageError(
            f"expected labelled cases of {pipeline}, got {len(cases)} unlabelled ones: label some, or give "
            "--cases FILE"
        )
    notes = [f"the agent's labelled set of {pipeline}"]
    notes += [f"{n} cases take no part: {reason}" for reason, n in left_out.items()]
    return cases, notes


def _case_pages(agent: Access, pipeline: str) -> Iterator[Mapping[str, Any]]:
    query = {"pipeline": pipeline}
    while True:
        page = agent.case_lines(query)
        yield from page["lines"]
        if page["next"] is None:
            return
        query["after"] = page["next"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choosing:
    """How the command was asked to choose, as text."""

    objective: str = "ndcg"
    margin: float | None = None
    constraint: str | None = None
    critical: Sequence[str] = ()
    baseline: int | None = None
    rules: Sequence[str] = ()
    passage_tokens: int | None = None
    price: float | None = None
    seed: int | None = None
    look: int = 1

    def settings(self, measures: Sequence[str]) -> SweepSettings:
        """Return the settings of the sweep. Raises UsageError."""
        known = (*measures, *ANSWER_MEASURES, USEFULNESS)
        chosen = SweepSettings(
            objective=self.objective,
            margin=self.margin,
            constraint=parse_constraint(self.constraint, known) if self.constraint else None,
            critical=tuple(self.critical),
            baseline_k=self.baseline,
            rules=tuple(parse_rule(rule) for rule in self.rules),
            passage_tokens=self.passage_tokens,
            usd_per_million_tokens=self.price,
            looks=Looks(look=self.look),
        )
        return chosen if self.seed is None else replace(chosen, seed=self.seed)

    def check(
        self, measures: Sequence[str], ks: Sequence[int], *, answers: bool, ragas: bool = False
    ) -> None:
        """Raise UsageError for what cannot be meant, before a call is paid for."""
        if not ks or min(ks) < 1:
            raise UsageError(f"expected depths k of at least 1, got {list(ks)}; give e.g. 3, 5, 8")
        chosen = self.settings(measures)
        known = (*measures, *(MEASURED if answers else ()), *((USEFULNESS,) if ragas else ()))
        chosen.check(known)
        asked = named_in(chosen.constraint) if chosen.constraint else []
        absent = [name for name in asked if name not in known and name not in QUANTITIES]
        if absent:
            needs = "--ragas" if absent[0] == USEFULNESS else "answers; give --generator and --judge"
            raise UsageError(
                f"expected a constraint on what is measured, got `{absent[0]}`: it needs {needs}, or "
                "leave it out"
            )
        if self.baseline is not None and self.baseline not in ks:
            told = ", ".join(map(str, ks))
            raise UsageError(f"expected --baseline among the depths {told}; got {self.baseline}")

    def check_cases(self, cases: Sequence[Case], *, answers: bool) -> None:
        """Raise UsageError where no case holds what is to be measured, before a call is paid for."""
        if not any(case.kind != "unjudged" for case in cases):
            raise UsageError(
                f"expected judged cases, got {len(cases)} unjudged ones: judge some (`resweep cases`), or "
                "name a file whose lines hold `judgments`"
            )
        tuning = [case for case in cases if case.kind == "answerable" and case.split != "holdout"]
        if self.objective == "evidence_coverage" and not any(case.required for case in tuning):
            raise UsageError(
                "expected cases with `required` facts, got none: evidence_coverage is not observed without"
            )
        if answers and not any(case.reference for case in tuning):
            raise UsageError(
                "expected cases with a `reference_answer`, got none: a judge has nothing to compare with; "
                "add references, or sweep retrieval alone"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A sweep of a live retriever as the command states it."""

    retriever: str
    cases: Sequence[Case]
    ks: Sequence[int]
    candidate_ks: Sequence[int] = ()
    first_stage: str | None = None
    revision: str = ""
    pipeline: str | None = None
    identity: Identity | None = None
    notes: Sequence[str] = ()


def _askable(cases: Sequence[Case], *, takes_filters: bool) -> tuple[list[Case], list[str]]:
    """Return the cases that a retriever can be asked as they were asked, and a note on the others.

    Raises UsageError where none is left.
    """
    filtered = [case for case in cases if case.filters]
    if takes_filters or not filtered:
        return list(cases), []
    left = [case for case in cases if not case.filters]
    told = f"{len(filtered)} of {len(cases)} cases were asked under a filter, and this retriever takes none"
    if not any(case.kind != "unjudged" for case in left):
        raise UsageError(
            f"{told}: name one that takes `filters`, a mapping of keys to values, beside the question"
        )
    return left, [f"{told}: they take no part"]


class LiveSweep:
    """A sweep of a live retriever, ready to be estimated and run. Raises UsageError where it cannot ask."""

    def __init__(self, wish: Wish, cache: Kept, policy: Policy) -> None:
        retriever = load_object(wish.retriever)
        self.identity = wish.identity or introspected(retriever, wish.pipeline)
        self._wish, self._cache, self._policy = wish, cache, policy
        grid = bool(wish.candidate_ks)
        live = Live(retriever)
        self._target = live.target(self._version(wish.retriever), grid=grid)
        cases, self._left = _askable(wish.cases, takes_filters=live.filters is not None)
        self._first: Target | None = None
        if wish.first_stage:
            self._first = Live(load_object(wish.first_stage)).target(self._version(wish.first_stage))
        self._wanted = Wanted(cases=cases, ks=wish.ks, candidate_ks=wish.candidate_ks)

    def _version(self, name: str) -> str:
        """Return what answers depend on: the code by its name, the config, the revision of the corpus."""
        return f"{name} {self.identity.config_hash} {self._wish.revision}"

    def estimate(self) -> Estimate:
        """Return what the sweep will cost, less what is answered already."""
        known = estimate_calls(self._target, self._wanted, self._cache)
        if self._first is None:
            return known
        depth = max((*self._wish.ks, *self._wish.candidate_ks))
        more = estimate_calls(self._first, Wanted(cases=self._wanted.cases, ks=(depth,)), self._cache)
        return Estimate(
            cases=known.cases,
            least=known.least + more.least,
            most=known.most + more.most,
            cached=known.cached + more.cached,
        )

    def run(
        self,
        settings: SweepSettings,
        watch: Watcher | None = None,
        answering: Answering | None = None,
        check: Checking | None = None,
        superseded: Superseded | None = None,
        weighing: Weighing | None = None,
    ) -> Sweep:
        """Sweep. Raises BudgetSpentError, InputError, UsageError."""
        wish = self._wish
        swept = sweep_live(
            self._target,
            self._wanted,
            settings,
            cache=self._cache,
            policy=self._policy,
            watch=watch,
            first_stage=self._first,
            pipeline=self.identity.pipeline,
            basis_hash=self.identity.basis_hash,
            notes=[*wish.notes, *self._left],
            answering=answering,
            check=check,
            weighing=weighing,
        )
        if superseded is not None:
            swept = with_superseded(swept, superseded)
        measured = {
            "how": "live",
            "retriever": wish.retriever,
            "revision": wish.revision or None,
            "config_hash": self.identity.config_hash,
            "parts": self.identity.document,
        }
        return replace(swept, report=swept.report.stamped(measured, time.time()))


def policy_of(
    section: SweepSection,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    max_usd: float | None = None,
) -> Policy:
    """Return how calls are made."""
    return Policy(
        max_tokens=max_tokens,
        max_usd=max_usd,
        concurrency=section.concurrency,
        attempts=section.attempts,
        timeout_s=section.timeout_s,
        max_calls=section.max_calls if max_calls is None else max_calls,
    )


RunFiles = Path | Mapping[int, Path]


def run_files(texts: Sequence[str]) -> RunFiles:
    """Return the file of ranked lists, or for a grid the file of each candidate depth: `50=deep.run`.

    Raises UsageError where several are given and one of them names no depth.
    """
    if len(texts) == 1 and (Path(texts[0]).exists() or "=" not in texts[0]):
        return Path(texts[0])
    files: dict[int, Path] = {}
    for text in texts:
        depth, _, name = text.partition("=")
        if not name or not depth.isdecimal() or int(depth) < 1 or int(depth) in files:
            raise UsageError(
                "expected one --run FILE, or one for each candidate depth as --run 10=a.run --run 50=b.run; "
                f"got {text}"
            )
        files[int(depth)] = Path(name)
    return files


def stamped_recorded(swept: Sweep, run: RunFiles, revision: str, identity: Identity | None) -> Sweep:
    """Return a sweep of recorded lists with what was swept; equal input keeps giving equal bytes."""
    names = run.name if isinstance(run, Path) else {str(depth): path.name for depth, path in run.items()}
    measured: dict[str, Any] = {"how": "recorded", "run": names}
    if revision:
        measured["revision"] = revision
    if identity is not None:
        measured |= {"config_hash": identity.config_hash, "parts": identity.document}
    return replace(swept, report=swept.report.stamped(measured))
