"""What a change to a path means: the shipped rules, the user's own, and what a bad file is told."""

from __future__ import annotations

import importlib.resources
import json
from pathlib import Path
from typing import Any

import pytest

from resweep import documents, shipped
from resweep.domain import paths
from resweep.domain.default_rules import DEFAULT_RULES
from resweep.domain.errors import InputError, NewerFormatError
from resweep.domain.fingerprint import fingerprint
from resweep.domain.invalidation import InvalidationRules
from resweep.shipped import invalidation_rules, rules_dir

RULES = InvalidationRules.load_default()


def own(*entries: dict[str, Any]) -> InvalidationRules:
    """Return the shipped rules with some of the user's before them."""
    return RULES.merged(InvalidationRules.from_mapping({"rules": list(entries)}))


@pytest.mark.parametrize(
    ("path", "component", "peak"),
    [
        ("chunker.tokens", "chunker", "down"),
        ("chunker.chunk_size", "chunker", "down"),
        ("chunker.overlap", "chunker", "up"),
        ("chunker.splitter", "chunker", "unknown"),
        ("splitter.chunkOverlap", "chunker", "up"),
        ("embedder.model", "embedder", "unknown"),
        ("embedder.revision", "embedder", "unknown"),
        ("embedder.dimensions", "embedder", "down"),
        ("embedder.query_prefix", "embedder", "unknown"),
        ("embedder.prompts.query", "embedder", "unknown"),
        ("embedder.normalize", "embedder", "unknown"),
        ("embedder.quantization", "embedder", "up"),
        ("embedder.pooling", "embedder", "unknown"),
        ("embeddings.modelName", "embedder", "unknown"),
        ("index.kind", "index", "unknown"),
        ("index.metric", "index", "unknown"),
        ("index.ef_search", "index", "down"),
        ("index.nprobe", "index", "down"),
        ("index.url", "index", "unknown"),
        ("index.host", "index", "unknown"),
        ("index.collection", "index", "unknown"),
        ("index.index_name", "index", "unknown"),
        ("vector_store.collection_name", "index", "unknown"),
        ("retriever.search_type", "index", "unknown"),
        ("retriever.weights[0]", "index", "unknown"),
        ("retriever.fusion.alpha", "index", "unknown"),
        ("retriever.search_kwargs.lambda_mult", "index", "unknown"),
        ("retriever.filters.tenant", "filter", "unknown"),
        ("reranker", "reranker", "down"),
        ("reranker.model", "reranker", "unknown"),
        ("rag.retriever.reranker.model", "reranker", "unknown"),
        ("generator.model", "generator", "unknown"),
        ("llm.max_context_tokens", "generator", "up"),
        ("generator.temperature", "generator", "none"),
        ("generator.prompt.template", "prompt", "unknown"),
        ("prompt.template", "prompt", "unknown"),
        ("filters.timeout", "filter", "unknown"),
        ("prompt.variables.batch_size", "prompt", "unknown"),
        ("context_order", "prompt", "unknown"),
    ],
)
def test_every_usual_part_invalidates(path: str, component: str, peak: str) -> None:
    """With the component that a flag will name, and the way the peak is expected to move."""
    found = RULES.effect_of(path)
    assert (found.effect, found.component, found.peak) == ("invalidates", component, peak)
    assert found.because


@pytest.mark.parametrize(
    "path",
    [
        *(
            "timeout",
            "index.timeout_s",
            "index.client.requestTimeout",
            "timeouts.read",
            "embedder.max_retries",
        ),
        *(
            "retry.backoff",
            "index.pool_size",
            "index.connection_pool.max",
            "embedder.batch_size",
            "num_workers",
        ),
        *(
            "reranker.max_concurrency",
            "logging.level",
            "log_level",
            "index.log_level",
            "verbose",
            "telemetry.endpoint",
        ),
        *(
            "tracing.enabled",
            "embedder.show_progress_bar",
            "embedder.device",
            "cache_dir",
            "generator.stream",
        ),
        *("corpus_revision", "description", "stages[3].timeout", "generator.rate_limit.rpm"),
    ],
)
def test_what_changes_no_answer_is_inert(path: str) -> None:
    """Timeouts, retries, pools, batches, logs and watching, wherever they stand."""
    assert RULES.effect_of(path).effect == "inert"


@pytest.mark.parametrize(
    "path", ["context_k", "candidate_k", "retriever.context_k", "k", "top_k", "reranker.top_n"]
)
def test_a_depth_is_what_a_sweep_chooses(path: str) -> None:
    """Also under the names that frameworks use."""
    found = RULES.effect_of(path)
    assert (found.effect, found.component, found.peak) == ("depth", "depth", "none")


@pytest.mark.parametrize(
    "name", ["url", "uri", "host", "hosts", "address", "endpoint", "path", "dsn", "base_url"]
)
@pytest.mark.parametrize("section", ["index", "vector_store", "retriever.index"])
def test_the_address_of_the_index_is_never_inert(section: str, name: str) -> None:
    """Another address may hold other vectors."""
    assert RULES.effect_of(f"{section}.{name}").effect == "invalidates"


@pytest.mark.parametrize(
    ("path", "component"),
    [("embedder.novelty", "embedder"), ("novelty", "unknown"), ("novelty.of.some[2].kind", "unknown")],
)
def test_a_path_that_no_rule_knows_invalidates(path: str, component: str) -> None:
    """Safe by default; the component is that of the section, where it names one."""
    found = RULES.effect_of(path)
    assert (found.effect, found.component, found.peak) == ("invalidates", component, "unknown")


def test_the_users_rules_come_first_and_the_first_that_matches_decides() -> None:
    """An entry of the user wins over every shipped one, and over a later one of his own."""
    rules = own(
        {"path": "index.replica", "effect": "inert", "because": "all replicas hold the same"},
        {"path": "index.*", "effect": "invalidates", "peak": "down", "component": "corpus"},
        {"path": "index.timeout_s", "effect": "depth"},
        {"path": ["**.weird", "a?c"], "effect": "inert"},
    )
    assert rules.effect_of("index.replica").because == "all replicas hold the same"
    assert rules.effect_of("index.timeout_s").effect == "invalidates"
    assert rules.effect_of("index.url").component == "corpus"
    assert rules.effect_of("vector_store.url").component == "corpus"
    assert rules.effect_of("index.deep.timeout_s").effect == "inert"
    assert [rules.effect_of(path).effect for path in ("x.y[1].weird", "abc", "abbc")] == [
        "inert",
        "inert",
        "invalidates",
    ]
    assert RULES.effect_of("index.replica").effect == "invalidates"


def test_the_users_rules_move_the_hashes() -> None:
    """A path called inert no longer counts; one called invalidating does."""
    rules = own({"path": "region", "effect": "inert"}, {"path": "timeout", "effect": "invalidates"})
    one, two = {"region": "eu", "timeout": 1}, {"region": "us", "timeout": 1}
    assert fingerprint(one, rules=rules).config_hash == fingerprint(two, rules=rules).config_hash
    assert fingerprint(one).config_hash != fingerprint(two).config_hash
    assert (
        fingerprint(one, rules=rules).config_hash
        != fingerprint({**one, "timeout": 2}, rules=rules).config_hash
    )


def test_the_user_may_name_sections_his_way() -> None:
    """A part of his own, or more names for a known one."""
    rules = RULES.merged(
        InvalidationRules.from_mapping({"parts": {"embedder": {"component": "embedder", "also": ["vektor"]}}})
    )
    assert rules.effect_of("vektor.model").component == "embedder"
    assert RULES.effect_of("vektor.model").component == "unknown"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([1], "mine.yaml: a mapping was expected, list came"),
        ({"rulez": []}, "mine.yaml: one of parts, rules, schema was expected, 'rulez' came"),
        ({"rules": {}}, "mine.yaml: rules: a list was expected, dict came"),
        ({"rules": ["x"]}, r"mine.yaml: rules\[0\]: a mapping was expected, str came"),
        (
            {"rules": [{"path": "a"}]},
            r"rules\[0\]: effect: one of invalidates, depth, inert was expected, None came",
        ),
        ({"rules": [{"path": "a", "effect": "inrt"}]}, "'inrt' came"),
        ({"rules": [{"effect": "inert"}]}, r"rules\[0\]: path: text was expected, None came"),
        ({"rules": [{"path": [], "effect": "inert"}]}, "path: at least one path was expected, none came"),
        (
            {"rules": [{"path": "a..b", "effect": "inert"}]},
            "'a..b': a pattern has a step between any two dots",
        ),
        (
            {"rules": [{"path": "a", "effect": "inert", "peak": "up"}]},
            "peak goes with the effect 'invalidates'",
        ),
        (
            {"rules": [{"path": "a", "effect": "invalidates", "peak": "left"}]},
            "one of down, up, unknown, none",
        ),
        (
            {"rules": [{"path": "a", "effect": "inert", "component": "llm"}]},
            "component: one of embedder, chunker",
        ),
        ({"rules": [{"path": "a", "effect": "inert", "why": "x"}]}, "'why' came"),
        (
            {"parts": {"a": {"component": "index", "also": "b"}}},
            "parts.a: also: a list was expected, str came",
        ),
        ({"parts": {"a": {"component": "index", "nested": "yes"}}}, "true or false was expected, 'yes' came"),
    ],
)
def test_a_bad_rules_file_is_told_what_was_expected(data: object, message: str) -> None:
    """With the file, the entry, what was expected and what came."""
    with pytest.raises(InputError, match=message):
        InvalidationRules.from_mapping(data, "mine.yaml")


def test_a_rules_file_of_a_later_resweep_is_named_as_such() -> None:
    """It is not read by guessing."""
    with pytest.raises(NewerFormatError, match="upgrade resweep"):
        InvalidationRules.from_mapping({"schema": "resweep.invalidation/2"})


def test_the_shipped_file_and_the_built_in_rules_are_one() -> None:
    """The built-in ones are written from the file: run `python .ci/write_default_rules.py` after a change."""
    shipped_file = documents.read(rules_dir() / "invalidation.yaml")
    assert json.loads(json.dumps(shipped_file)) == DEFAULT_RULES
    assert all(rule.because for rule in RULES.rules)


def test_a_users_file_is_read_and_tried_first(tmp_path: Path) -> None:
    """As the settings name it."""
    file = tmp_path / "mine.yaml"
    file.write_text("rules:\n  - {path: index.url, effect: inert}\n")
    assert invalidation_rules(file).effect_of("index.url").effect == "inert"
    assert invalidation_rules() == RULES


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: [", "YAML was expected"),
        (b"\xff\xfe\x00", "YAML was expected"),
        (b"!!python/object:os.x {}", "YAML was"),
    ],
)
def test_a_file_that_is_no_yaml_is_told_so(tmp_path: Path, content: bytes, message: str) -> None:
    """One line, with the file's name; nothing in it is ever run."""
    file = tmp_path / "mine.yaml"
    file.write_bytes(content)
    with pytest.raises(InputError, match=message) as refused:
        invalidation_rules(file)
    assert str(file) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there_is_told_so(tmp_path: Path) -> None:
    """So is a folder in its place."""
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(InputError, match="cannot be read: "):
            documents.read(path)


def test_rules_that_are_not_installed_are_missed_loudly(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Neither in a wheel nor in a checkout."""
    monkeypatch.setattr(shipped, "files", lambda _: tmp_path)
    monkeypatch.setattr(shipped, "__file__", str(tmp_path / "a" / "b" / "c.py"))
    with pytest.raises(FileNotFoundError, match="install it anew"):
        rules_dir()
    assert importlib.resources.files("resweep")  # the real one is untouched


@pytest.mark.parametrize(
    ("path", "written"),
    [
        (("a", "b"), "a.b"),
        (("a", 0, "b"), "a[0].b"),
        (("a.b", "c d", 'e"f'), '["a.b"]["c d"]["e\\"f"]'),
        (("a", paths.ANYWHERE), "a[*]"),
        (("", "[x]"), '[""]["[x]"]'),
        ((), ""),
    ],
)
def test_a_path_is_written_and_read_back(path: paths.Path, written: str) -> None:
    """Odd keys are quoted, so that a path in a message can be pasted into a rules file's test."""
    assert paths.text(path) == written
    assert paths.parse(written) == path
