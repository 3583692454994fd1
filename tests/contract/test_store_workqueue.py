"""Shared work: a call is one worker's at a time, its answer everybody's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import create_engine
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.pool import NullPool

from resweep.domain.errors import StoreError, UsageError
from resweep.domain.turn import Turn
from resweep.store.workqueue import SharedAnswers, work

Open = Callable[..., SharedAnswers]


@pytest.fixture(name="join")
def _join(postgresql: Callable[[], str]) -> Iterator[Open]:
    """Give a function that joins the work as one more worker."""
    url, opened = postgresql(), list[SharedAnswers]()
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
    with suppress(ProgrammingError), engine.begin() as connection:  # there is no table before the first test
        connection.execute(work.delete())

    def join(max_age_s: float | None = None) -> SharedAnswers:
        opened.append(SharedAnswers(url, max_age_s))
        return opened[-1]

    yield join
    for one in opened:
        one.close()


@pytest.mark.integration
def test_a_call_is_one_workers_until_it_is_answered(join: Open) -> None:
    """Then the answer is there for all, for the one who came too late as well."""
    a, b = join(), join()
    assert (a.take("k", 60), b.take("k", 60), a.take("k", 60)) == (
        Turn("mine"),
        Turn("elsewhere"),
        Turn("mine"),
    )
    a.put("k", b"v")
    assert (b.take("k", 60), b.get("k"), b.known(["k", "k", "other"])) == (Turn("there", b"v"), b"v", 1)


@pytest.mark.integration
def test_a_call_whose_worker_died_is_free_when_its_time_is_up(join: Open) -> None:
    """Nothing else has to notice the death."""
    a, b = join(), join()
    assert a.take("k", 0.0).whose == "mine"
    assert b.take("k", 60).whose == "mine"


@pytest.mark.integration
def test_what_is_given_back_is_anybodys(join: Open) -> None:
    """But only by the one who took it."""
    a, b = join(), join()
    a.take("k", 60)
    b.release(["k"])
    assert b.take("k", 60).whose == "elsewhere"
    a.release(["k"])
    assert b.take("k", 60).whose == "mine"


@pytest.mark.integration
def test_a_failure_is_everybodys_too(join: Open) -> None:
    """All workers report the same case as missing; an answer that came all the same outlives it."""
    a, b = join(), join()
    a.take("k", 60)
    a.fail("k", "TimeoutError: 30 s")
    assert b.take("k", 60) == Turn("failed", error="TimeoutError: 30 s")
    a.put("k", b"v")
    b.fail("k", "late")
    assert b.take("k", 60) == Turn("there", b"v")


@pytest.mark.integration
def test_an_answer_too_old_is_asked_anew(join: Open) -> None:
    """Except for what follows from its key alone."""
    join().put("k", b"v")
    late = join(max_age_s=-1.0)
    assert (late.get("k"), late.get("k", ever=True)) == (None, b"v")
    assert (late.take("k", 60, ever=True), late.take("k", 60)) == (Turn("there", b"v"), Turn("mine"))


@pytest.mark.integration
def test_many_workers_make_every_call_once(join: Open) -> None:
    """Eight at once over a hundred calls, each in its own order."""
    made: list[str] = []

    def labour(worker: SharedAnswers, first: int) -> None:
        for i in range(100):
            key = str((i + first) % 100)
            if worker.take(key, 60).whose == "mine":
                made.append(key)
                worker.put(key, key.encode())

    threads = [threading.Thread(target=labour, args=(join(), 13 * i)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made, key=int) == [str(i) for i in range(100)]


def test_a_database_that_cannot_be_shared_is_refused(tmp_path: Path) -> None:
    """SQLite serves one machine; a server that is not there is told as such."""
    with pytest.raises(UsageError, match="expected postgresql://HOST/NAME to share work"):
        SharedAnswers(f"sqlite:///{tmp_path / 'a.db'}")
    with pytest.raises(StoreError):
        SharedAnswers("postgresql://nobody@127.0.0.1:1/none")
