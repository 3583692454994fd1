"""What changed between two configs, what it means, and how it is said; the depths a config declares."""

from __future__ import annotations

from typing import Any

import pytest

from resweep.domain.depth import depths
from resweep.domain.diff import Change, components, diff, in_words
from resweep.domain.fingerprint import fingerprint


def changes(old: dict[str, Any], new: dict[str, Any]) -> tuple[Change, ...]:
    """Return what differs between two configs."""
    return diff(fingerprint(old).document, fingerprint(new).document)


def told(old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, Any, Any, str]]:
    """Return the path, both values and the effect of all that differs."""
    return [(change.path, change.before, change.after, change.effect) for change in changes(old, new)]


def test_a_change_says_path_values_effect_component_peak_and_reason() -> None:
    """All that a flag needs."""
    assert changes({"embedder": {"model": "m1"}}, {"embedder": {"model": "m2"}}) == (
        Change(
            path="embedder.model",
            before="m1",
            after="m2",
            effect="invalidates",
            component="embedder",
            peak="unknown",
            because="another embedder ranks differently, and which way the peak moves depends on both",
        ),
    )


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": True}, {"a": 1}, [("a", True, 1, "invalidates")]),
        ({}, {"a": "x"}, [("a", None, "x", "invalidates")]),
        ({"a": "x"}, {}, [("a", "x", None, "invalidates")]),
        ({"a": [1, 2]}, {"a": [2, 1]}, [("a", [1, 2], [2, 1], "invalidates")]),
        ({"s": [{"n": 1}, {"n": 2}]}, {"s": [{"n": 1}, {"n": 3}]}, [("s[1].n", 2, 3, "invalidates")]),
        (
            {"s": [{"n": 1}]},
            {"s": [{"n": 1}, {"n": 3}]},
            [("s", [{"n": 1}], [{"n": 1}, {"n": 3}], "invalidates")],
        ),
        ({"s": [{"timeout": 1}]}, {"s": [{"timeout": 2}]}, [("s[0].timeout", 1, 2, "inert")]),
        (
            {"s": [[{"timeout": 1}]]},
            {"s": [[{"timeout": 2}]]},
            [("s", [[{"timeout": 1}]], [[{"timeout": 2}]], "inert")],
        ),
        ({"a": "x"}, {"a": {"b": 1}}, [("a", "x", {"b": 1}, "invalidates")]),
        ({"context_k": 8}, {"context_k": 10}, [("context_k", 8, 10, "depth")]),
        ({"timeout": 1}, {}, [("timeout", 1, None, "inert")]),
        ({}, {"reranker": {"model": "r"}}, [("reranker", None, {"model": "r"}, "invalidates")]),
        (
            {},
            {"reranker": {"model": "r", "top_n": 5, "timeout": 1}},
            [
                ("reranker", None, {"model": "r"}, "invalidates"),
                ("reranker.timeout", None, 1, "inert"),
                ("reranker.top_n", None, 5, "depth"),
            ],
        ),
        ({}, {"retriever": {"context_k": 8}}, [("retriever.context_k", None, 8, "depth")]),
        (
            {},
            {"openai": {"timeout": 8}},
            [("openai", None, {}, "invalidates"), ("openai.timeout", None, 8, "inert")],
        ),
        ({}, {"logging": {"level": "debug"}}, [("logging.level", None, "debug", "inert")]),
        ({}, {"index": {}}, []),
    ],
)
def test_what_differs_is_found(old: dict[str, Any], new: dict[str, Any], expected: list[Any]) -> None:
    """Lists as wholes, rows one by one, sections as one where all of it counts."""
    assert told(old, new) == expected


@pytest.mark.parametrize(
    ("old", "new", "peak"),
    [
        ({"chunker": {"tokens": 256}}, {"chunker": {"tokens": 512}}, "down"),
        ({"chunker": {"tokens": 512}}, {"chunker": {"tokens": 256}}, "up"),
        ({"chunker": {"overlap": 0}}, {"chunker": {"overlap": 64}}, "up"),
        ({}, {"reranker": {"model": "r"}}, "down"),
        ({"reranker": {"model": "r"}}, {}, "up"),
        ({"reranker": {"enabled": True}}, {"reranker": {"enabled": False}}, "up"),
        ({"index": {"quantization": "none"}}, {"index": {"quantization": "int8"}}, "up"),
        ({"index": {"quantization": "int8"}}, {"index": {"quantization": "binary"}}, "unknown"),
        ({"generator": {"temperature": 0}}, {"generator": {"temperature": 1}}, "none"),
    ],
)
def test_the_peak_moves_the_other_way_when_a_value_falls(
    old: dict[str, Any], new: dict[str, Any], peak: str
) -> None:
    """A rule speaks of growth; a value that shrinks, is switched off or goes reads it the other way round."""
    assert [change.peak for change in changes(old, new)] == [peak]


def test_a_sentence_says_what_changed_and_what_it_means() -> None:
    """What matters first, then depths, then what is inert."""
    old = {"context_k": 8, "embedder": {"model": "m1"}, "timeout": 3}
    new = {"context_k": 10, "embedder": {"model": "org/m2"}, "timeout": 4}
    first, second, third = in_words(changes(old, new)).split("; ")
    assert first == (
        "embedder.model changed from m1 to org/m2 (the peak may move either way: another embedder ranks "
        "differently, and which way the peak moves depends on both)"
    )
    assert second == "context_k changed from 8 to 10 (depth: it is what a sweep chooses)"
    assert third.startswith("timeout changed from 3 to 4 (inert: it says how long to wait")


def test_a_sentence_says_what_came_and_went() -> None:
    """With the value in brief."""
    assert in_words(changes({}, {"reranker": {"model": "r 1"}})).startswith(
        'reranker was added: {"model": "r 1"} (the peak should move down: '
    )
    assert in_words(changes({"note": "x y"}, {})).startswith('note was removed, it was "x y" (')
    assert in_words(()) == "nothing changed"


def test_a_sentence_stays_short() -> None:
    """Long values are cut, with their sizes where the cut hides what differs; many changes are counted."""
    long = "word " * 100
    said = in_words(changes({"prompt": long}, {"prompt": f"{long}!"}))
    assert said.startswith('prompt changed, from 502 to 503 bytes: "word word')
    assert len(said) < 250
    many = changes({}, {f"p{number}": number for number in range(10)})
    assert in_words(many, most=2).endswith("; and 8 more")


def test_at_most_two_components_are_named_the_most_telling_first() -> None:
    """Depths count only where nothing else changed; what is inert never does."""
    old = {"prompt": "a", "chunker": {"tokens": 1}, "embedder": {"model": "m"}, "context_k": 1, "timeout": 1}
    new = {"prompt": "b", "chunker": {"tokens": 2}, "embedder": {"model": "n"}, "context_k": 2, "timeout": 2}
    assert components(changes(old, new)) == ("embedder", "chunker")
    assert components(changes({"context_k": 1, "timeout": 1}, {"context_k": 2, "timeout": 2})) == ("depth",)
    assert components(changes({"timeout": 1}, {"timeout": 2})) == ()
    assert components(changes({"novelty": 1}, {"novelty": 2})) == ("unknown",)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, (None, None)),
        ({"context_k": 8, "candidate_k": 50}, (8, 50)),
        ({"context_k": 8.0}, (8, None)),
        ({"candidate_k": 50, "retriever": {"context_k": 8}}, (8, 50)),
        ({"context_k": 8, "retriever": {"context_k": 9}}, (8, None)),
        ({"context_k": 8, "retriever": {"search_kwargs": {"k": 20}}}, (8, None)),
        ({"context_k": "all", "candidate_k": True}, (None, None)),
        ({"context_k": 0}, (None, None)),
        ({"k": 5}, (5, None)),
        ({"retriever": {"top_k": 5}}, (5, None)),
        ({"search": {"searchKwargs": {"k": 5, "fetch_k": 40}}}, (5, 40)),
        ({"retriever": {"k": 50}, "reranker": {"model": "r", "top_n": 5}}, (5, 50)),
        ({"retriever": {"k": 50, "reranker": {"top_k": 5}}}, (5, 50)),
        ({"retriever": {"k": 50}, "reranker": {"model": "r"}}, (None, 50)),
        ({"retriever": {"k": 5}, "reranker": {"enabled": False}}, (5, None)),
        ({"retriever": {"k": 5}, "reranker": "none"}, (5, None)),
        ({"retrievers": [{"k": 5}, {"k": 9}]}, (None, None)),
        ({"chunker": {"k": 5}}, (None, None)),
    ],
)
def test_the_declared_depths_are_read(
    config: dict[str, Any], expected: tuple[int | None, int | None]
) -> None:
    """context_k and candidate_k where they stand, else a framework's names, where they leave no doubt."""
    assert depths(fingerprint(config).document) == expected


@pytest.mark.parametrize(
    "path",
    [
        *("k", "top_k", "fetch_k", "retriever.k", "retriever.similarity_top_k", "retriever.search_kwargs.k"),
        *("retriever.search_kwargs.fetch_k", "index.top_k", "reranker.top_n", "context_k", "a.candidate_k"),
    ],
)
def test_every_name_read_as_a_depth_stays_out_of_the_basis(path: str) -> None:
    """What is compared with the tuned k must not void it."""

    def nested(depth: int) -> dict[str, Any]:
        value: Any = depth
        for step in reversed(path.split(".")):
            value = {step: value}
        return {"embedder": {"model": "m"}, **value}

    one, two = fingerprint(nested(5)), fingerprint(nested(6))
    assert one.basis_hash == two.basis_hash
    assert one.config_hash != two.config_hash
