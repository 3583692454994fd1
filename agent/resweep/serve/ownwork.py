"""An agent that runs the canaries of one pipeline itself, with a retriever it loads as `module:object`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from resweep.domain.batch import ConfigRecord
from resweep.domain.errors import UsageError
from resweep.domain.work import Leased, Offer, WorkAnswer
from resweep.record.adapters import adapter_for
from resweep.record.embedding import embedder_of
from resweep.record.hand import Hand
from resweep.record.recorder import Recorder
from resweep.record.sinks import NullSink
from resweep.record.watching import Watch
from resweep.record.work import Worker
from resweep.schedule.desk import Desk
from resweep.schedule.workdesk import WorkDesk
from resweep.serve.named import load_object
from resweep.settings import CanarySection
from resweep.store.sql import SqlStore

Current = Callable[[], ConfigRecord | None]


def own_worker(settings: CanarySection, store: SqlStore, desk: Desk, work: WorkDesk) -> Worker | None:
    """Return what does the agent's own canaries, not started; None where no retriever is set.

    Raises UsageError where the retriever or its embedder cannot be loaded, or no pipeline is named.
    """
    if settings.retriever is None:
        return None
    if settings.pipeline is None:
        raise UsageError("expected canary.pipeline beside canary.retriever: whose canaries it runs")
    pipeline = settings.pipeline
    retriever = load_object(settings.retriever)
    embed = load_object(settings.embedder) if settings.embedder else embedder_of(retriever)
    recorder = Recorder(NullSink())
    nobody = ConfigRecord(pipeline=pipeline, config="", basis="", document={}, complete=False)
    watch = Watch(recorder, nobody, name=pipeline)
    channel = OwnChannel(work, watch, lambda: _in_charge(store, desk, pipeline))
    worker = Worker(recorder, channel)
    worker.add(Hand(watch, retriever, _methods(retriever), embed, canaries=True))
    channel.retriever = retriever  # nobody else holds on to it
    return worker


class OwnChannel:
    """The way from the agent's own worker to its desk: no network, and always the config in charge."""

    def __init__(self, work: WorkDesk, watch: Watch, current: Current) -> None:
        self._work = work
        self._watch = watch
        self._current = current
        self.retriever: Any = None

    def ask(self, offer: Offer) -> Leased:
        """Lease work for the config that is in charge now; none before there is one."""
        record = self._current()
        if record is None:
            return Leased(again_s=self._work.settings.poll_s)
        self._watch.record, self._watch.config = record, record.config
        able = tuple(
            msgspec.structs.replace(can, config=record.config, basis=record.basis) for can in offer.can
        )
        return self._work.lease(msgspec.structs.replace(offer, can=able))

    def answer(self, answer: WorkAnswer) -> None:
        """Hand an answer over."""
        self._work.answer(answer)


def _in_charge(store: SqlStore, desk: Desk, pipeline: str) -> ConfigRecord | None:
    configs = store.configs(pipeline)
    verdicts = desk.verdicts(desk.now())
    config = next((v.config for v in verdicts if v.pipeline == pipeline), None)
    return next((c for c in configs if c.config == config), configs[-1] if configs else None)


def _methods(retriever: Any) -> list[str]:
    found = adapter_for(retriever).methods(retriever)
    return [name for name in found if name != "__call__"]
