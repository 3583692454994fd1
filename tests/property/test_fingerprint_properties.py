"""What holds for the fingerprint of any config."""

from __future__ import annotations

import json
import random
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from resweep.domain import paths
from resweep.domain.canonical import MAX_INTEGER, jcs, nfc, number
from resweep.domain.diff import diff
from resweep.domain.fingerprint import fingerprint
from resweep.domain.scrub import scrub

STEADY = settings(deadline=None, max_examples=60)  # a slow machine is no failure
THOROUGH = settings(deadline=None, max_examples=300)

# Names that the rules know for each effect, and some that they do not.
NAMES = st.sampled_from(
    [
        *(
            "embedder",
            "chunker",
            "index",
            "retriever",
            "reranker",
            "generator",
            "logging",
            "openai",
            "filters",
        ),
        *("model", "tokens", "url", "timeout", "batch_size", "k", "context_k", "candidate_k", "a", "b"),
    ]
)
WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBERS = st.one_of(
    st.integers(-MAX_INTEGER, MAX_INTEGER), st.floats(allow_nan=False, allow_infinity=False), st.booleans()
)
SCALARS = st.one_of(st.none(), NUMBERS, WORDS)


def trees(leaves: st.SearchStrategy[Any], keys: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    """Return mappings and lists of some leaves."""
    return st.recursive(
        leaves,
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=4)),
        max_leaves=12,
    )


PLAIN_KEYS = st.text("abcdefgh_", min_size=1, max_size=5)
CONFIGS = st.dictionaries(PLAIN_KEYS, trees(SCALARS, PLAIN_KEYS), max_size=5)
SMALL = st.sampled_from([1, 2, "x", True])
RAG_CONFIGS = st.dictionaries(NAMES, trees(SMALL, NAMES), max_size=4)


def shuffled(value: Any, rng: random.Random) -> Any:
    """Return the same content with keys in another order, lists as tuples, whole numbers as floats."""
    if isinstance(value, dict):
        keys = list(value)
        rng.shuffle(keys)
        return {key: shuffled(value[key], rng) for key in keys}
    if isinstance(value, list):
        return tuple(shuffled(item, rng) for item in value)
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


@STEADY
@given(CONFIGS, st.randoms(use_true_random=False))
def test_order_and_kind_of_container_do_not_count(config: dict[str, Any], rng: random.Random) -> None:
    """Key order, tuple or list, 1 or 1.0: one identity."""
    assert fingerprint(shuffled(config, rng)) == fingerprint(config)


@STEADY
@given(st.sets(st.one_of(st.integers(-50, 50), PLAIN_KEYS)), st.randoms(use_true_random=False))
def test_the_order_of_a_set_does_not_count(members: set[Any], rng: random.Random) -> None:
    """A set built in another order is the same set."""
    listed = list(members)
    rng.shuffle(listed)
    assert fingerprint({"x": set(listed)}) == fingerprint({"x": frozenset(members)})


@STEADY
@given(st.sets(st.integers(-99, 99)), st.sets(PLAIN_KEYS))
def test_a_set_equals_the_list_that_sorting_gives(numbers: set[int], words: set[str]) -> None:
    """So that a file without sets can say the same."""
    assert fingerprint({"n": numbers, "w": words}) == fingerprint({"n": sorted(numbers), "w": sorted(words)})


@STEADY
@given(
    st.lists(st.integers(), unique=True, min_size=2, max_size=5).map(lambda items: [x % 1000 for x in items])
)
def test_the_order_of_a_list_counts(items: list[int]) -> None:
    """Stages run in their order."""
    same = items == items[::-1]
    assert (fingerprint({"x": items}) == fingerprint({"x": items[::-1]})) is same


@STEADY
@given(CONFIGS)
def test_a_document_has_the_identity_of_its_config(config: dict[str, Any]) -> None:
    """Through JSON and through YAML."""
    first = fingerprint(config)
    for written in (json.loads(json.dumps(first.document)), yaml.safe_load(yaml.safe_dump(first.document))):
        again = fingerprint(written)
        assert (again.config_digest, again.basis_digest) == (first.config_digest, first.basis_digest)
        assert again.document == first.document


@STEADY
@given(CONFIGS)
def test_lenient_reading_of_plain_data_is_strict_reading(config: dict[str, Any]) -> None:
    """`check` on a file and `watch` in a service agree."""
    assert fingerprint(config, strict=False) == fingerprint(config)


@STEADY
@given(CONFIGS)
def test_nulls_equal_what_is_absent(config: dict[str, Any]) -> None:
    """A key without a value is no key."""
    assert fingerprint({**config, "nothing": None}) == fingerprint(config)


@THOROUGH
@given(RAG_CONFIGS, RAG_CONFIGS)
def test_changes_and_hashes_agree(old: dict[str, Any], new: dict[str, Any]) -> None:
    """A basis differs exactly where a change invalidates; a config where one does or is a depth."""
    before, after = fingerprint(old), fingerprint(new)
    effects = {change.effect for change in diff(before.document, after.document)}
    assert (before.basis_digest != after.basis_digest) == ("invalidates" in effects)
    assert (before.config_digest != after.config_digest) == bool(effects & {"invalidates", "depth"})


@STEADY
@given(RAG_CONFIGS, RAG_CONFIGS)
def test_a_change_back_names_the_same_paths(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Before and after swapped, the same paths, effects and components."""
    documents = fingerprint(old).document, fingerprint(new).document
    there, back = diff(*documents), diff(*documents[::-1])
    assert [(c.path, c.before, c.after, c.effect, c.component) for c in there] == [
        (c.path, c.after, c.before, c.effect, c.component) for c in back
    ]


@STEADY
@given(CONFIGS)
def test_canonical_bytes_are_json_and_canonical_again(config: dict[str, Any]) -> None:
    """Read by any JSON reader, written again, they are the same bytes."""
    written = jcs(dict(fingerprint(config).document))
    assert jcs(json.loads(written, parse_int=float)) == written


@STEADY
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_reads_back(value: float) -> None:
    """The shortest digits are those of the very double."""
    assert float(number(value)) == value


@STEADY
@given(WORDS)
def test_normal_forms_are_stable(text: str) -> None:
    """Text in normal form stays as it is, and the parts join to the whole."""
    assert nfc(nfc(text)) == nfc(text)


SECRETISH = st.lists(
    st.sampled_from(
        [
            *(
                "sk-",
                "ghp_",
                "Bearer ",
                "Basic ",
                "://",
                "user",
                ":",
                "@",
                "host",
                "?",
                "&",
                "#",
                "=",
                "api_key",
                "/",
            ),
            *(
                "'",
                '"',
                " ",
                "***",
                "eyJ",
                ".",
                "abc123",
                "AKIA",
                "dXNlcjpwYXNz",
                "Authorization",
                "token",
                "\n",
                "{",
            ),
        ]
    ),
    max_size=14,
).map("".join)


@THOROUGH
@given(SECRETISH)
def test_text_once_cleaned_is_clean(text: str) -> None:
    """Cleaning again changes nothing: a stored document is never taken apart further."""
    clean = scrub(text)
    assert clean is None or scrub(clean) == clean


@STEADY
@given(st.text("0123456789abcdef", min_size=6, max_size=64))
def test_bare_hex_is_never_taken_for_a_secret(text: str) -> None:
    """It may be a revision."""
    assert fingerprint({"revision": text, "x": [text]}).document == {"revision": text, "x": [text]}


@STEADY
@given(
    st.text("abcdefABCDEF0123456789_-", min_size=8, max_size=40),
    st.text("abcdef0123456789", min_size=8, max_size=20),
)
def test_rotating_a_credential_changes_nothing(one: str, two: str) -> None:
    """Under its name, in a URL, in a header."""

    def config(secret: str) -> dict[str, Any]:
        return {
            "api_key": secret,
            "url": f"https://u:{secret}@h.example/x?token={secret}",
            "headers": {"Authorization": f"Bearer {secret}"},
            "dsn": f"host=db password={secret}",
        }

    assert fingerprint(config(one)) == fingerprint(config(two))
    assert one not in json.dumps(fingerprint(config(one)).document)


@STEADY
@given(st.lists(st.one_of(WORDS, st.integers(0, 99)), max_size=5).map(tuple))
def test_a_written_path_reads_back(path: paths.Path) -> None:
    """Whatever the keys are."""
    assert paths.parse(paths.text(path)) == path
