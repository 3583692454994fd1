"""What a process shows: the catalog without an agent, its own health with one."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client import REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

import resweep
from resweep.record.process import recorders


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    yield
    from resweep_exporters.prometheus import unregister

    for recorder in list(recorders().values()):
        unregister(recorder)
    resweep.shutdown()


def page(registry: CollectorRegistry) -> dict[str, float]:
    """Every sample of a page that adds up over labels."""
    total: dict[str, float] = {}
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        for sample in family.samples:
            total[sample.name] = total.get(sample.name, 0.0) + sample.value
    return total


def series(registry: CollectorRegistry) -> int:
    return sum(not line.startswith("#") for line in generate_latest(registry).decode().splitlines())


def test_series_exist_at_zero_before_the_first_call() -> None:
    """The first increment after a deploy can be seen."""
    registry = CollectorRegistry()
    resweep.watch(lambda query: ["a"], sink="none", registry=registry, pipeline="zero")
    text = generate_latest(registry).decode()
    assert 'resweep_empty_retrievals_total{config="' in text
    assert page(registry)["resweep_retrievals_total"] == 0.0


def test_created_three_times_in_one_process() -> None:
    """No exception, each name once, the total is 15, and the default registry has them."""
    watched: list[Any] = [
        resweep.watch(lambda query: ["a"], sink="none", pipeline=name) for name in ("a", "b")
    ]
    importlib.reload(importlib.import_module("resweep.record.process"))
    importlib.reload(importlib.import_module("resweep.record.api"))
    importlib.reload(resweep)
    watched.append(resweep.watch(lambda query: ["a"], sink="none", pipeline="a"))
    for retrieve in watched:
        for _ in range(5):
            retrieve("q")
    assert page(REGISTRY)["resweep_retrievals_total"] == 15.0


def test_a_registry_of_ones_own_gets_everything_and_the_default_one_nothing() -> None:
    """No metric of ours is on the default registry."""
    own = CollectorRegistry()
    resweep.watch(lambda query: ["a"], sink="none", registry=own)("q")
    assert page(own)["resweep_retrievals_total"] == 1.0
    assert "resweep_retrievals_total" not in page(REGISTRY)


def test_a_label_that_grows_with_the_users() -> None:
    """50 configs, many queries, sources and messages: under 1,000 series, and no count is lost."""
    registry = CollectorRegistry()
    n = 0

    def retrieve(query: str) -> list[dict[str, object]]:
        if n % 20 == 0:
            raise RuntimeError(f"message {n}")
        return [{"id": f"p{n}", "text": query, "source": f"s{n % 5000}", "score": 0.5}]

    watched = [
        resweep.watch(retrieve, sink="none", registry=registry, pipeline="big", config={"version": i})
        for i in range(50)
    ]
    for n in range(10_000):
        with contextlib.suppress(RuntimeError):
            watched[n % 50](f"query {n} of user {n % 1000}")
    found = page(registry)
    assert (found["resweep_retrievals_total"], found["resweep_retrieval_errors_total"]) == (10_000, 500)
    assert series(registry) < 1000
    text = generate_latest(registry).decode()
    assert not any(part in text for part in ("query ", "message ", "user ", "s17"))


def test_beside_an_agent_a_process_shows_its_own_health_alone() -> None:
    """With a sink the traffic is the agent's to show."""
    registry = CollectorRegistry()
    with resweep.testing.capture() as sink:
        retrieve: Any = resweep.watch(lambda query: ["a"], sink=sink, registry=registry)
        retrieve("q")
        found = page(registry)
    assert found["resweep_process_calls_total"] == 1.0
    assert "resweep_retrievals_total" not in found


def test_without_an_agent_feedback_counts_once_per_rater() -> None:
    """The same word again changes nothing; it is counted on the pipeline of the event."""
    registry = CollectorRegistry()
    resweep.watch(lambda query: ["a"], sink="none", registry=registry, pipeline="rated")("q")
    event_id = resweep.current_event_id()
    for rater in ("u1", "u1", "u2"):
        resweep.feedback(event_id, "negative", rater=rater)
    text = generate_latest(registry).decode()
    (line,) = [x for x in text.splitlines() if 'kind="negative"' in x and "feedback_total" in x]
    assert 'pipeline="rated"' in line
    assert line.endswith(" 2.0")


def test_overflow_keeps_every_counter_exact() -> None:
    """A ring that is full loses records, not counts, and says how many."""
    registry = CollectorRegistry()
    n = 0

    def retrieve(query: str, k: int = 4) -> list[str] | None:
        return [None, [], ["a"], ["a"] * 4][n % 4]

    retrieve = resweep.watch(retrieve, sink="none", registry=registry, config={"context_k": 4})
    (recorder,) = recorders().values()
    recorder.running = True  # nobody folds meanwhile
    recorder.ring.resize(100)
    for n in range(4000):  # noqa: B007 - read by the retriever
        retrieve("q", k=4)
    found = page(registry)
    assert found["resweep_retrievals_total"] == 4000
    assert (found["resweep_empty_retrievals_total"], found["resweep_short_retrievals_total"]) == (2000, 1000)
    assert found["resweep_dropped_records_total"] == 3900
    assert found["resweep_process_calls_total"] == 4000


def test_a_watch_that_sees_no_call_is_told_from_one_that_does() -> None:
    """A wrapper that nobody calls, and answers without scores, are on the page."""
    registry = CollectorRegistry()
    answer = [{"id": f"p{i}", "source": "a.md"} for i in range(30)]
    called: Any = resweep.watch(lambda query: answer, sink="none", registry=registry, pipeline="called")
    uncalled: Any = resweep.watch(lambda query: answer, sink="none", registry=registry, pipeline="uncalled")
    called("q")
    text = generate_latest(registry).decode()
    for state, count in (("called", 1), ("uncalled", 1), ("no_scores", 1), ("no_ids", 0)):
        assert f'resweep_process_watches{{state="{state}"}} {count}.0' in text
    assert callable(uncalled)
