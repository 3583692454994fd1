"""A sweep of recorded ranked lists, from files: no live system, no model, no cost.

    sweep_recorded("bm25.run", "test.qrels", (3, 5, 8)).to_json()

The run is a TREC run or recorded events (`resweep.event/1`), the judgments are TREC qrels, a BEIR folder or a
`resweep.case/1` file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from resweep.domain.errors import InputError, UsageError
from resweep.domain.event import RetrievalEvent
from resweep.sweep.caselines import LeftOut, read_cases
from resweep.sweep.engine import Sweep, sweep_lists
from resweep.sweep.fromevents import lists_from_events
from resweep.sweep.lists import Case, Lists
from resweep.sweep.report import Report
from resweep.sweep.settings import DEFAULT_DEPTHS, SweepSettings
from resweep.sweep.textfile import first_line
from resweep.sweep.trec import cases_of_qrels, read_beir, read_qrels, read_run

# Whoever wires the command passes the reader of `resweep.event/1`; this package does not know it.
EventReader = Callable[[Path], Iterable[RetrievalEvent]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """How to read what was recorded.

    `events` reads `resweep.event/1` files; `pipeline` and `config` (12 hex) say which of their events count.
    `beir_split` names the split of a BEIR folder.
    """

    events: EventReader | None = None
    pipeline: str | None = None
    config: str | None = None
    beir_split: str = "test"


def sweep_recorded(
    run: Path | str | Mapping[int, Path | str],
    qrels: Path | str,
    k: Sequence[int] = DEFAULT_DEPTHS,
    settings: SweepSettings | None = None,
    *,
    source: Source | None = None,
    first_stage: Path | str | None = None,
    basis_hash: str | None = None,
) -> Report:
    """Return the report of a retrieval-only sweep over recorded lists.

    `run` is a file, or for a grid one file per candidate_k. `first_stage` is a run before the reranker.
    Raises InputError for files that cannot be used and UsageError for what cannot be meant.
    """
    return run_sweep(
        run, qrels, k, settings, source=source, first_stage=first_stage, basis_hash=basis_hash
    ).report


def run_sweep(
    run: Path | str | Mapping[int, Path | str],
    qrels: Path | str,
    k: Sequence[int] = DEFAULT_DEPTHS,
    settings: SweepSettings | None = None,
    *,
    source: Source | None = None,
    first_stage: Path | str | None = None,
    basis_hash: str | None = None,
) -> Sweep:
    """Return the sweep with its evidence; arguments and errors as in `sweep_recorded`."""
    source = source or Source()
    cases, left_out = load_cases(Path(qrels), source.beir_split)
    notes = [f"line {line.line} of {qrels} takes no part: {line.reason}" for line in left_out]
    return sweep_cases(
        run, cases, k, settings, source=source, first_stage=first_stage, basis_hash=basis_hash, notes=notes
    )


def sweep_cases(
    run: Path | str | Mapping[int, Path | str],
    cases: Sequence[Case],
    k: Sequence[int] = DEFAULT_DEPTHS,
    settings: SweepSettings | None = None,
    *,
    source: Source | None = None,
    first_stage: Path | str | None = None,
    basis_hash: str | None = None,
    notes: Sequence[str] = (),
) -> Sweep:
    """Return the sweep of recorded lists over cases that were read already; else as `run_sweep`."""
    source = source or Source()
    grid = isinstance(run, Mapping)
    paths = {depth: Path(path) for depth, path in run.items()} if isinstance(run, Mapping) else {0: Path(run)}
    lists = {depth: load_lists(path, cases, source) for depth, path in paths.items()}
    everyone = [*cases, *_unjudged(cases, lists.values())]
    _check_shared(cases, lists.values())
    runs = lists if grid else {_candidate_depth(lists[0]): lists[0]}
    return sweep_lists(
        everyone,
        runs,
        k,
        settings,
        grid=grid,
        first_stage=None if first_stage is None else load_lists(Path(first_stage), cases, source),
        pipeline=source.pipeline,
        basis_hash=basis_hash,
        notes=[*notes, *(note for depth, path in paths.items() for note in _order(path, lists[depth]))],
    )


def _order(path: Path, lists: Lists) -> list[str]:
    """Tell of a TREC run whose scores do not fall with its ranks: who goes by score reads it otherwise."""
    if first_line(path).startswith("{"):
        return []
    rising = sum(
        any(a is not None and b is not None and b > a for a, b in pairwise(ranked.scores))
        for ranked in lists.values()
    )
    where = f"in {rising} of {len(lists)} lists of {path.name} scores do not fall down the ranks"
    why = "order is the rank column, then the file's; tools that go by score (trec_eval) give other figures"
    return [f"{where}: {why}"] if rising else []


def load_cases(path: Path, beir_split: str = "test") -> tuple[list[Case], list[LeftOut]]:
    """Return the cases of qrels, a BEIR folder or a `resweep.case/1` file, and the lines left out."""
    if path.is_dir():
        return read_beir(path, beir_split), []
    head = first_line(path)
    if head.startswith("{") and '"case_id"' in head:
        return read_cases(path)
    return cases_of_qrels(read_qrels(path)), []


def load_lists(path: Path, cases: Sequence[Case], source: Source) -> Lists:
    """Return the ranked lists of a TREC run, or of recorded events joined to the cases."""
    if not first_line(path).startswith("{"):
        return read_run(path)
    if source.events is None:
        raise UsageError(f"expected a TREC run, got JSON lines in {path}; give a reader of resweep.event/1")
    return lists_from_events(source.events(path), cases, pipeline=source.pipeline, config=source.config)


def _unjudged(cases: Sequence[Case], lists: Iterable[Lists]) -> list[Case]:
    """Return the queries of the runs that nobody judged, so that they are counted."""
    known = {case.case_id for case in cases}
    asked = dict.fromkeys(query for one in lists for query in one)
    return [Case(case_id=query) for query in asked if query not in known]


def _check_shared(cases: Sequence[Case], lists: Iterable[Lists]) -> None:
    for one in lists:
        if cases and not any(case.case_id in one for case in cases):
            asked = next(iter(one), "none")
            raise InputError(
                "expected the run and the judgments to share queries, got none in common "
                f"(judged: '{cases[0].case_id}', ...; run: '{asked}', ...); use the same query ids in both"
            )


def _candidate_depth(lists: Lists) -> int:
    """Return how many candidates a plain run was given: as recorded, else its longest list."""
    recorded = [ranked.candidates for ranked in lists.values() if ranked.candidates]
    return max(recorded, default=0) or max((len(ranked.ids) for ranked in lists.values()), default=0)
