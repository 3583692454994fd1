"""The work desk over a real store: what is leased when, what comes of it, and the epochs of a basis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from resweep.detect.judge import Judge
from resweep.detect.settings import DetectSettings
from resweep.domain.batch import Batch, ConfigRecord
from resweep.domain.case import CaseLine, Judgment
from resweep.domain.clock import VirtualClock
from resweep.domain.errors import UsageError
from resweep.domain.event import Hit, RetrievalEvent
from resweep.domain.fingerprint import fingerprint
from resweep.domain.invalidation import InvalidationRules
from resweep.domain.verdict import Flag, TunedK
from resweep.domain.window import Window
from resweep.domain.work import Can, Embedded, Offer, Retrieved, Work, WorkAnswer, encode
from resweep.record.channels import FolderChannel
from resweep.schedule.canaries import CanarySettings
from resweep.schedule.desk import Desk
from resweep.schedule.questions import labelled
from resweep.schedule.workdesk import WorkDesk
from resweep.schedule.workfolder import WorkFolder
from resweep.serve import calls
from resweep.serve.ownwork import own_worker
from resweep.settings import CanarySection
from resweep.store import open_store
from resweep.store.sql import SqlStore

START = 1_800_000_000.0
RULES = InvalidationRules.load_default()
KNOWN = fingerprint({"embedder": {"model": "m1"}, "context_k": 8})
RECORD = ConfigRecord(
    pipeline="bot", config=KNOWN.config_hash, basis=KNOWN.basis_hash, document=KNOWN.document
)
ROTATIONS = {
    name: np.linalg.qr(np.random.default_rng(i).normal(size=(32, 32)))[0] for i, name in enumerate("AB")
}


class World:
    """An agent's store, judge and work desk on a virtual clock, and a recorder that does what it is told."""

    def __init__(self, folder: Path, settings: CanarySettings | None = None) -> None:
        self.clock = VirtualClock(START)
        self.store: SqlStore = open_store(str(folder / "s.db"), clock=self.clock)
        self.desk = Desk(self.store, self._judge, self.clock)
        self.desk.open()
        self.work = WorkDesk(
            self.store, self.desk, settings or CanarySettings(), self.clock, monotonic=self.clock.now
        )
        self.system = "A"
        self.can = Can(
            pipeline="bot",
            config=RECORD.config,
            basis=RECORD.basis,
            kinds=("embed", "retrieve", "probe"),
            canaries=True,
        )
        self.hear()

    @staticmethod
    def _judge(state: bytes | None) -> Judge:
        return Judge(DetectSettings(), RULES, state)

    def hear(self, *events: RetrievalEvent) -> None:
        """Let a minute of traffic come in."""
        counts = {"retrievals": 40, "ok": 40, "served": 40, "asked:8": 40}
        minute = int(self.clock.now() // 60)
        one = Batch(
            writer="w",
            seq=int(self.clock.now() * 10),
            ts=self.clock.now(),
            configs=[RECORD],
            windows=[Window("bot", RECORD.config, minute, counts=counts)],
            events=list(events),
        )
        assert self.store.apply(one)
        self.desk.heard(one)
        self.work.heard(one)
        self.desk.sit()

    def lease(self, writer: str = "w") -> list[Work]:
        """Ask for work as a recorder."""
        return list(self.work.lease(Offer(writer=writer, can=(self.can,))).work)

    def turn(self, wait: float = 3600.0) -> list[str]:
        """Let time pass, ask for work and do it; return its kinds."""
        self.clock.advance(wait)
        leased = self.lease()
        for work in leased:
            assert self.work.answer(self._do(work))
        self.desk.sit()
        return [work.kind for work in leased]

    def _do(self, work: Work) -> WorkAnswer:
        if work.kind == "embed":
            vectors = tuple(Embedded(id=ask.id, vector=self._embed(ask.text)) for ask in work.asks)
            return WorkAnswer(id=work.id, writer="w", vectors=vectors)
        ids = [ask.id for ask in work.asks] or [work.event_id or ""]
        drop = 50 if self.system == "A" else 40
        hits = tuple(Hit(f"{self.system}{n}", 1 - n / drop) for n in range(work.k or 8))
        return WorkAnswer(id=work.id, writer="w", retrieved=tuple(Retrieved(id=i, hits=hits) for i in ids))

    def _embed(self, text: str) -> tuple[float, ...]:
        vector = np.random.default_rng(sum(text.encode())).normal(size=32)
        return tuple((ROTATIONS[self.system] @ vector).tolist())

    def accept(self, k: int | None = None) -> TunedK:
        """Accept a depth, as a person does."""
        wish = {"pipeline": "bot"} | ({} if k is None else {"context_k": k})
        calls.accept(self, wish, RULES, self.clock.now())
        return self.store.tuned("bot")[-1]

    @property
    def flags(self) -> list[Flag]:
        """The open flags of the active layer."""
        return [flag for flag in self.store.flags() if flag.layer == "active"]

    @property
    def verdict(self) -> str:
        """The verdict on record."""
        return self.store.verdicts("bot")[0].state


@pytest.fixture(name="make")
def _make(tmp_path: Path) -> Iterator[Callable[..., World]]:
    made: list[World] = []

    def make(**settings: object) -> World:
        made.append(World(tmp_path, CanarySettings(**settings)))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for world in made:
        world.store.close()


@pytest.fixture(name="world")
def _world(make: Callable[..., World]) -> World:
    return make()


def event(n: int, **more: object) -> RetrievalEvent:
    """Return a sampled event with its query."""
    known = {"query": f"q{n}", "query_key": n, "hits": (Hit("p"),), "returned": 1, **more}
    return RetrievalEvent(f"e{n}", START, "bot", RECORD.config, **known)  # type: ignore[arg-type]


def test_canaries_run_once_an_hour_however_often_recorders_ask(world: World) -> None:
    """And with two workers still once."""
    assert world.turn(0) == ["embed"]
    assert (world.lease("w"), world.lease("v")) == ([], [])
    assert world.turn(3599) == []
    assert world.turn(1) == ["embed"]


def test_who_does_not_want_canaries_gets_none(world: World) -> None:
    """Nor does a retriever that rests."""
    wanted = world.can
    world.can = Can(pipeline="bot", config=wanted.config, basis=wanted.basis, kinds=wanted.kinds)
    assert world.lease() == []
    world.can = Can(
        pipeline="bot",
        config=wanted.config,
        basis=wanted.basis,
        kinds=wanted.kinds,
        canaries=True,
        resting=True,
    )
    assert world.lease() == []


def test_a_failure_is_tried_again_soon_and_concludes_nothing(world: World) -> None:
    """After five minutes; the trouble is on record."""
    world.turn(0)
    world.clock.advance(3600)
    (work,) = world.lease()
    failed = WorkAnswer(id=work.id, writer="w", vectors=(Embedded(id="x", error="TimeoutError"),))
    assert world.work.answer(failed)
    assert world.flags == []
    assert world.turn(299) == []
    assert world.turn(1) == ["embed"]


def test_swap_accept_rollback(world: World) -> None:
    """A swap expires the tuned k; the accepted one is a new epoch; the old one is found again."""
    first = world.accept(8)
    world.turn(0)
    world.turn()
    assert (first.epoch, world.verdict, world.flags) == (1, "valid", [])
    world.system = "B"
    world.turn()
    (flag,) = world.flags
    assert (flag.reason, flag.severity, world.verdict) == ("silent_change", "page", "expired")
    second = world.accept(5)
    assert (second.epoch, second.context_k, world.flags) == (2, 5, [])
    assert world.verdict == "suspect"  # it still runs at 8
    assert second.observed["dimensions"] == 32
    world.turn()
    assert (world.flags, world.store.tuned("bot")[-1].context_k) == ([], 5)
    world.system = "A"
    world.turn()
    assert (world.flags, world.verdict) == ([], "valid")
    assert world.store.tuned("bot")[-1].context_k == 8
    world.system = "B"
    world.turn()
    assert (world.flags, world.store.tuned("bot")[-1].context_k) == ([], 5)


def test_accepting_again_what_did_not_change_is_the_same_epoch(world: World) -> None:
    """Another depth for the same embedder replaces the record."""
    world.turn(0)
    assert (world.accept(8).epoch, world.accept(6).epoch) == (1, 1)
    world.turn()
    assert (len(world.store.tuned("bot")), world.flags) == (1, [])


def test_accepting_after_a_rollback_is_the_earlier_epoch(world: World) -> None:
    """A, B, A: the third acceptance replaces the first."""
    world.turn(0)
    world.accept(8)
    world.system = "B"
    world.turn()
    world.accept(5)
    world.system = "A"
    world.turn()
    assert world.accept(7).epoch == 1
    assert [(t.epoch, t.context_k) for t in world.store.tuned("bot")] == [(2, 5), (1, 7)]


def test_a_swap_undone_clears_by_itself(world: World) -> None:
    """One flag, opened once and cleared once, within the five minutes in which open flags are looked at."""
    world.accept(8)
    world.turn(0)
    world.system = "B"
    for _ in range(5):
        world.turn()
    world.system = "A"
    assert world.turn(300) == ["embed"]
    assert (world.flags, world.verdict) == ([], "valid")
    assert len([f for f in world.store.flags(open_only=False) if f.layer == "active"]) == 1


def test_a_restart_neither_repeats_nor_loses_a_flag(world: World) -> None:
    """The state is the store's."""
    world.accept(8)
    world.turn(0)
    world.system = "B"
    world.turn()
    before = world.flags
    world.desk = Desk(world.store, world._judge, world.clock)
    world.desk.open()
    world.work = WorkDesk(world.store, world.desk, CanarySettings(), world.clock, monotonic=world.clock.now)
    world.work.run()
    world.desk.sit()
    assert world.flags == before
    assert [f.layer for f in world.store.flags(open_only=False)].count("active") == 1


def test_maintenance_makes_it_a_notice(world: World) -> None:
    """Announced work wakes nobody."""
    world.turn(0)
    world.store.start_maintenance("bot", "me")
    world.desk.sit()
    world.system = "B"
    world.turn()
    assert [flag.severity for flag in world.flags] == ["notice"]
    world.store.end_maintenance("bot")
    world.desk.sit()
    world.work.run()
    world.desk.sit()
    assert [flag.severity for flag in world.flags] == ["page"]


def test_live_queries_are_frozen_and_forgotten_with_their_events(make: Callable[..., World]) -> None:
    """A deletion reaches the questions made of them."""
    world = make(queries=3)
    world.clock.advance(1)
    world.hear(*(event(n) for n in range(10)))
    assert world.turn(0) == ["embed", "retrieve", "probe"]
    asked = world.store.canaries("bot")
    assert len(asked) == 3
    world.store.delete_events([str(asked[0].event_id)])
    assert len(world.store.canaries("bot")) == 2


def test_probes_keep_to_their_budget(make: Callable[..., World]) -> None:
    """At the wanted depth, kept beside the event, gone with it."""
    world = make(probes_per_hour=60)
    world.clock.advance(1)
    world.can = Can(pipeline="bot", config=RECORD.config, basis=RECORD.basis, kinds=("probe",))
    world.hear(*(event(n) for n in range(100)))
    assert world.turn(0) == ["probe"]
    assert sum(len(world.turn(60)) for _ in range(5)) == 5
    (kept,) = [p for n in range(1) if (p := world.store.probe(f"e{n}"))]
    assert (kept.k, len(kept.hits)) == (40, 40)
    world.store.delete_events(["e0"])
    assert world.store.probe("e0") is None


def test_a_probe_of_a_deleted_event_is_not_kept(world: World) -> None:
    """The deletion came while it was under way."""
    world.clock.advance(1)
    world.can = Can(pipeline="bot", config=RECORD.config, basis=RECORD.basis, kinds=("probe",))
    world.hear(event(0))
    (work,) = world.lease()
    world.store.delete_events(["e0"])
    world.work.answer(world._do(work))
    assert world.store.probe("e0") is None


def test_judged_questions_of_a_file_become_recall(make: Callable[..., World], tmp_path: Path) -> None:
    """Shown as a gauge by depth."""
    path = tmp_path / "q.jsonl"
    path.write_text("".join(f'{{"query": "q{n}", "relevant": ["A0", "A9"]}}\n' for n in range(5)))
    world = make(file=str(path))
    assert world.turn(0) == ["embed", "retrieve"]
    shown = {
        s.labels: s.value for s in world.store.snapshot().samples if s.metric == "resweep_canary_recall_ratio"
    }
    assert shown["bot", RECORD.config, "8"] == 0.5
    assert shown["bot", RECORD.config, "1"] == 0.5


def test_labelled_cases_are_judged_questions(world: World) -> None:
    """As they are labelled now: nothing of them is copied."""
    lines = [
        CaseLine(
            case_id=f"case-{n}",
            query=f"question number {n}",
            pipeline="bot",
            state="labelled",
            judgments=[Judgment(passage_id="A3", grade=1.0), Judgment(passage_id="A5", grade=0.0)],
        )
        for n in range(4)
    ]
    world.store.import_cases(lines, "me")
    assert world.turn(0) == ["embed", "retrieve"]
    assert len(labelled(world.store, "bot")) == 4
    assert labelled(world.store, "bot")[0].relevant == {"A3": 1}
    assert world.store.canaries("bot") == []
    (run,) = [one for one in world.store.canary_runs("bot") if one.kind == "retrieve"]
    assert run.shown["quality"]["compared"] == 4  # type: ignore[index]
    world.system = "B"
    for _ in range(3):
        world.turn()
    assert {flag.reason for flag in world.flags} == {"silent_change", "quality_drop"}


def test_work_through_files_is_the_same(world: World, tmp_path: Path) -> None:
    """Offer, lease, answer; a second lease waits until the first was taken."""
    folder = tmp_path / "work"
    desk = WorkFolder(folder, world.work)
    desk.run()
    channel, offer = FolderChannel(folder), Offer(writer="w", can=(world.can,))
    assert channel.ask(offer).work == ()
    desk.run()
    channel.ask(offer)
    world.clock.advance(7200)
    (folder / "todo" / "w.json").write_bytes(encode(world.work.lease(offer)))
    desk.run()
    assert (folder / "offers" / "w.json").exists()
    (work,) = channel.ask(offer).work
    channel.answer(world._do(work))
    desk.run()
    assert [run.kind for run in world.store.canary_runs("bot")] == ["embed"]
    assert list((folder / "done").iterdir()) == []


def test_an_agent_can_run_them_itself(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a retriever loaded by name, for the config in charge."""
    (tmp_path / "own_retriever.py").write_text(
        "def retrieve(query, k=3):\n    return [{'id': f'p{i}', 'score': 1 - i / 9} for i in range(k)]\n"
        "def embed(text):\n    return [float(len(text)), 1.0, float(text.count('e'))]\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    chosen = CanarySection(retriever="own_retriever:retrieve", embedder="own_retriever:embed", pipeline="bot")
    worker = own_worker(chosen, world.store, world.desk, world.work)
    assert worker is not None
    worker.turn()
    (run,) = world.store.canary_runs("bot")
    assert (run.kind, run.config, world.flags) == ("embed", RECORD.config, [])


def test_an_agents_own_retriever_needs_a_pipeline(world: World) -> None:
    """Or nobody knows whose canaries these are; without a retriever there is nothing to do."""
    assert own_worker(CanarySection(), world.store, world.desk, world.work) is None
    with pytest.raises(UsageError, match=r"canary\.pipeline"):
        own_worker(CanarySection(retriever="a:b"), world.store, world.desk, world.work)


def test_what_is_no_offer_or_answer_is_dropped(world: World, tmp_path: Path) -> None:
    """Logged, and gone."""
    for kind in ("offers", "done"):
        (tmp_path / "work" / kind).mkdir(parents=True)
        (tmp_path / "work" / kind / "x.json").write_text("{")
    WorkFolder(tmp_path / "work", world.work).run()
    assert list((tmp_path / "work").rglob("*.json")) == []
