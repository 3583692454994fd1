"""`resweep replay --cases`: what a recording would have put into the labelled set."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from resweep.ingest.jsonlines import Item
    from resweep.label.replay import CaseRecorder
    from resweep.settings import Settings


class ReplayCases:
    """Hears the items of a recording."""

    def __init__(self, recorder: CaseRecorder) -> None:
        self.recorder = recorder

    def hear_item(self, item: Item) -> None:
        """Take an event or feedback; what else is on record makes no case."""
        from resweep.domain.event import Feedback
        from resweep.ingest.jsonlines import EventLine

        if isinstance(item, EventLine):
            self.recorder.take(item.event)
        elif isinstance(item, Feedback):
            self.recorder.hear(item)


def case_recorder(settings: Settings, seed: str | None) -> ReplayCases:
    """Return what samples a recording as the agent would have. Raises UsageError for a bad embedder."""
    from resweep.label.replay import CaseRecorder
    from resweep.label.sampler import Sampler
    from resweep.serve.named import load_object
    from resweep.serve.parts import label_settings

    told = label_settings(settings)
    told = told if seed is None else replace(told, seed=seed)
    named = settings.label.embedder
    return ReplayCases(CaseRecorder(Sampler(told, load_object(named) if named else None)))


def write_cases(target: Path, heard: ReplayCases) -> None:
    """Write the cases. Raises UsageError where the file cannot be written."""
    from resweep.serve.casefiles import CaseWithList, write

    write("jsonl", (CaseWithList(case) for case in heard.recorder.finish()), target)
