"""The two sides of a comparison, whatever they are: a kept sweep, recorded lists, or a live retriever."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from resweep.domain.errors import UsageError
from resweep.serve.live import Live
from resweep.serve.named import load_object
from resweep.serve.sweeping import introspected
from resweep.sweep.calls import Calls
from resweep.sweep.compare import Side
from resweep.sweep.evidence import Cell
from resweep.sweep.lists import Case, RankedList
from resweep.sweep.recorded import Source, load_lists
from resweep.sweep.runner import Wanted, gather_live
from resweep.sweep.saved import REPORT_FILE, Saved, is_saved, read_saved


class Named(NamedTuple):
    """A side as the command names it, read as far as it goes without asking anything."""

    name: str
    saved: Saved | None = None
    file: Path | None = None
    live: bool = False

    @property
    def chosen(self) -> int | None:
        """Return the depth that a kept sweep chose."""
        return self.saved.report["chosen"]["context_k"] if self.saved else None


def named(text: str) -> Named:
    """Return what a side is: a folder of `sweep --save`, a file of lists, else `module:object`.

    Raises UsageError for none of these, InputError for a folder that cannot be read.
    """
    path = Path(text)
    folder = path.parent if path.name == REPORT_FILE else path
    if is_saved(folder):
        saved = read_saved(folder)
        return Named(f"{saved.report['pipeline'] or folder.name} ({saved.report['report_id']})", saved=saved)
    if path.is_file():
        return Named(path.name, file=path)
    if ":" in text and not path.exists():
        return Named(text, live=True)
    raise UsageError(
        "expected a folder of `resweep sweep --save`, a TREC run, resweep.event/1, or MODULE:OBJECT; "
        f"got {text}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """How the two sides are read: recorded lists by `source`, live ones by `calls`, in one budget."""

    cases: Sequence[Case]
    source: Source
    calls: Calls
    revision: str = ""

    def side(self, one: Named, k: int) -> Side:
        """Return a side at a depth. Raises InputError, UsageError, BudgetSpentError."""
        if one.saved is not None:
            return Side(one.saved.at(_cell(one.saved, k)), k)
        if one.file is not None:
            return Side(load_lists(one.file, self.cases, self.source), k)
        return Side(self._ask(one.name, k), k)

    def _ask(self, name: str, k: int) -> dict[str, RankedList]:
        retriever = load_object(name)
        known = introspected(retriever, None)
        target = Live(retriever).target(f"{name} {known.config_hash} {self.revision}")
        wanted = Wanted(cases=self.cases, ks=(k,))
        runs = gather_live(target, wanted, self.calls).runs
        return dict(next(iter(runs.values())))


def _cell(saved: Saved, k: int) -> Cell:
    """Return the cell of a kept sweep at a context depth: the chosen candidate depth, else the deepest."""
    candidate_k = saved.report["chosen"]["candidate_k"] or max(saved.runs)
    return Cell(candidate_k, k)


def depth_of(k: int | None, one: Named, other: Named) -> int:
    """Return the depth a side is looked at: as stated, its own choice, or the other side's.

    Raises UsageError where none is known.
    """
    found = k or one.chosen or other.chosen
    if found is None:
        raise UsageError("expected a depth to compare at; give --k N")
    return found


def cases_of(cases: Sequence[Case] | None, sides: Sequence[Named]) -> Sequence[Case]:
    """Return the cases to compare on: those given, else those of the kept sweeps that both have.

    Raises UsageError where there are none, or where the two were judged differently.
    """
    if cases is not None:
        return cases
    kept = [one.saved.cases for one in sides if one.saved is not None]
    if not kept:
        raise UsageError("expected labelled cases; give --cases FILE, a BEIR folder or TREC qrels")
    if len(kept) == 1:
        return kept[0]
    first, second = ({case.case_id: case for case in some} for some in kept)
    shared = [case for case_id, case in second.items() if case_id in first]
    unlike = [case.case_id for case in shared if first[case.case_id].judgments != case.judgments]
    if unlike:
        raise UsageError(
            f"expected equal judgments in both sweeps, got others for {len(unlike)} cases ('{unlike[0]}', "
            "...): sweep both on the same labelled set, or give --cases FILE"
        )
    return shared
