"""Canaries and probes in the user's process: a thread of low priority that does what the agent leases to it.

It never runs on a request, makes one call at a time with a pause between two, and leaves a retriever alone
for a while after it raised. What it retrieves is off the record.
"""

from __future__ import annotations

import logging
import os
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from resweep.domain.event import Hit
from resweep.domain.values import label
from resweep.domain.work import Embedded, Offer, Retrieved, Work, WorkAnswer
from resweep.record.asked import ask, complete, deeper, off_record
from resweep.record.channels import Channel, channel_of
from resweep.record.content import Redaction, with_texts
from resweep.record.embedding import embed_with
from resweep.record.hand import Hand, Held
from resweep.record.hits import Hits
from resweep.record.passages import find
from resweep.record.process import recorders
from resweep.record.tokens import Tokens
from resweep.record.watching import DEPTHS, QUERIES

if TYPE_CHECKING:
    from resweep.record.recorder import Recorder
    from resweep.record.watching import Watch

FIRST_S = 1.0
AWAY_S = (10.0, 30.0, 60.0, 300.0)  # between two tries while no agent answers
CANARY_HITS = 64  # hits of one answer that are sent
_NICE = 10
_log = logging.getLogger("resweep")


class Worker:
    """Does the work of one recorder. The thread starts with the first recorded call of a process."""

    def __init__(self, recorder: Recorder, channel: Channel) -> None:
        self._recorder = recorder
        self._channel = channel
        self._pause_s = 0.0
        self._hands: list[Hand] = []
        self._readers: dict[int, Hits] = {}
        self._pid = 0
        self._stop = threading.Event()
        self._told: set[str] = set()

    def add(self, hand: Hand) -> None:
        """Take in a retriever that may be given work."""
        self._hands = [one for one in self._hands if one.alive()] + [hand]

    def start(self) -> None:
        """Start the thread, once in each process."""
        if self._pid == os.getpid() or not self._hands:
            return
        self._pid, self._stop = os.getpid(), threading.Event()
        thread = threading.Thread(target=self._run, args=(self._stop,), name="resweep-work", daemon=True)
        with suppress(RuntimeError):  # the interpreter is ending, or no thread can be had
            thread.start()

    def stop(self) -> None:
        """Let the thread end after the call it is in."""
        self._stop.set()

    def turn(self) -> float:
        """Ask for work once and do it; return after how many seconds to ask again. Raises OSError."""
        hands = [hand for hand in self._hands if hand.alive()]
        writer = self._recorder.writer
        offers = tuple(hand.can() for hand in hands)
        if not any(one.kinds for one in offers):
            return AWAY_S[-1]
        leased = self._channel.ask(Offer(writer=writer, can=offers))
        self._pause_s = leased.pause_s
        for work in leased.work:
            hand = next((h for h in hands if _fits(h, work)), None)
            if not self._stop.is_set():
                self._channel.answer(self._do(hand, work, writer))
        return leased.again_s

    def _run(self, stop: threading.Event) -> None:
        _be_nice()
        misses, wait = 0, FIRST_S
        while not stop.wait(wait * random.uniform(0.9, 1.1)):  # noqa: S311 - spreads the polls of many workers
            try:
                wait, misses = self.turn(), 0
            except OSError as error:
                wait = AWAY_S[min(misses, len(AWAY_S) - 1)]
                misses += 1
                self._tell_once("no work can be had from the agent: %s", str(error))
            except Exception as error:  # noqa: BLE001 - the user's service goes on
                wait = AWAY_S[-1]
                self._tell_once("work stumbled over %s", type(error).__name__)

    def _do(self, hand: Hand | None, work: Work, writer: str) -> WorkAnswer:
        if hand is None:
            return WorkAnswer(id=work.id, writer=writer, error="unknown retriever")
        if work.kind == "embed":
            return WorkAnswer(id=work.id, writer=writer, vectors=tuple(self._embed(hand, work)))
        if work.kind == "retrieve":
            return WorkAnswer(id=work.id, writer=writer, retrieved=tuple(self._retrieve(hand, work)))
        return self._probe(hand, work, writer)

    def _embed(self, hand: Hand, work: Work) -> list[Embedded]:
        done: list[Embedded] = []
        for asked in work.asks:
            vector = self._guarded(hand, partial(embed_with, hand.embed, asked.text))
            if vector is None:
                return [*done, Embedded(id=asked.id, error=hand.trouble)]
            done.append(Embedded(id=asked.id, vector=vector))
        return done

    def _retrieve(self, hand: Hand, work: Work) -> list[Retrieved]:
        done: list[Retrieved] = []
        for asked in work.asks:
            call = self._canary(hand, asked.text, asked.kwargs, work.k)
            found = self._guarded(hand, partial(self._hits, hand, call, texts=False))
            if found is None:
                return [*done, Retrieved(id=asked.id, error=hand.trouble)]
            done.append(Retrieved(id=asked.id, hits=found[:CANARY_HITS]))
        return done

    def _canary(self, hand: Hand, query: str, kwargs: Mapping[str, Any], k: int | None) -> Callable[[], Any]:
        own, depth = hand.watch.probe, k or hand.watch.asked
        functions = hand.functions()
        if own is not None and depth is not None:
            return lambda: own(query, depth, **kwargs)
        return lambda: ask(functions[0][1], query, kwargs)

    def _probe(self, hand: Hand, work: Work, writer: str) -> WorkAnswer:
        held = hand.held(work.event_id)
        function = dict(hand.functions()).get(held.name) if held is not None else None
        if held is None or function is None:
            return WorkAnswer(id=work.id, writer=writer, error="gone")
        call = self._deeper(hand, held, function, work.k or 0)
        if call is None:
            hand.fixed = True
            self._tell_once(
                "%s: probes cannot look deeper, since its calls take no k; give watch(probe=…)",
                hand.watch.name,
            )
            return WorkAnswer(id=work.id, writer=writer, error="depth is fixed")
        found = self._guarded(hand, partial(self._hits, hand, call, texts=True))
        if found is None:
            return WorkAnswer(id=work.id, writer=writer, error=hand.trouble)
        one = Retrieved(id=work.event_id or "", hits=found)
        return WorkAnswer(id=work.id, writer=writer, retrieved=(one,))

    def _deeper(
        self, hand: Hand, held: Held, function: Callable[..., Any], k: int
    ) -> Callable[[], Any] | None:
        own = hand.watch.probe
        if own is not None:
            query = held.query
            kwargs = _without(held.kwargs, query)
            return lambda: own(query, k, **kwargs)
        arguments = deeper(function, held.args, held.kwargs, k)
        if arguments is None:
            return None
        args, deep = arguments
        return lambda: function(*args, **deep)

    def _guarded(self, hand: Hand, call: Callable[[], Any]) -> Any | None:
        """Return what a call returns; None where it raised, and then the retriever rests."""
        try:
            found = off_record([w for one in list(recorders().values()) for w in list(one.watches)], call)
        except Exception as error:  # noqa: BLE001 - a user's retriever may raise anything
            hand.failed(
                f"{type(error).__name__}: {error}" if hand.watch.capture != "none" else type(error).__name__
            )
            self._tell_once(
                "%s: work failed with %s; leaving it alone for a while", hand.watch.name, hand.trouble
            )
            return None
        hand.worked()
        self._stop.wait(self._pause_s)
        return found

    def _hits(self, hand: Hand, call: Callable[[], Any], *, texts: bool) -> tuple[Hit, ...]:
        watch, result = hand.watch, complete(call())
        found = find(watch.extract(result) if watch.extract is not None else result)
        reader = self._readers.setdefault(id(watch.tokens), Hits(Tokens(watch.tokens)))
        hits, _ = reader.of(found.passages)
        reader.restart()
        return with_texts(hits, found.passages, Redaction(watch.redact)) if texts else hits

    def _tell_once(self, message: str, *args: object) -> None:
        key = message % args
        if key not in self._told and len(self._told) < 100:
            self._told.add(key)
            _log.warning(message, *args)


def take_up(
    recorder: Recorder, watch: Watch, watched: Any, names: Sequence[str], embed: Any, canaries: bool
) -> None:
    """Let a watched retriever be given work, where its owner wants canaries or its texts are kept."""
    if not canaries and watch.capture == "none":
        return
    if recorder.worker is None:
        channel = channel_of(recorder.sink)
        if channel is None:
            if canaries:
                _log.warning("%s: canaries need an agent: a spool or an URL as sink", watch.name)
            return
        recorder.worker = Worker(recorder, channel)
    recorder.worker.add(Hand(watch, watched, names, embed, canaries))


def _fits(hand: Hand, work: Work) -> bool:
    return (hand.watch.pipeline, hand.watch.config) == (label(work.pipeline), work.config)


def _without(kwargs: Mapping[str, Any], query: object) -> dict[str, Any]:
    return {
        name: value
        for name, value in kwargs.items()
        if name not in DEPTHS and not (name in QUERIES and value is query)
    }


def _be_nice() -> None:
    """Let the service's own threads go first, where the system can tell threads apart."""
    with suppress(Exception):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
