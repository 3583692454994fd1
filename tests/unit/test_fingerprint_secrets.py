"""Credentials never reach a document or a hash, and what is no credential stays."""

from __future__ import annotations

import json
from typing import Any

import pydantic
import pytest

from resweep.domain.errors import ConfigError, UnstableValueError
from resweep.domain.fingerprint import Fingerprint, fingerprint
from resweep.domain.scrub import scrub
from resweep.domain.secrets import hides

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY-----"


def stored(found: Fingerprint) -> str:
    """Return all that a fingerprint would leave in a store."""
    return json.dumps([found.document, found.omitted, found.opaque, found.config_digest], ensure_ascii=False)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "api_key",
            "apiKey",
            "API-KEY",
            "apikey",
            "OPENAI_API_KEY",
            "openaiApiKey",
            "api_key_2",
            "api_key_prod",
        ),
        *(
            "x-api-key",
            "Authorization",
            "proxy-authorization",
            "password",
            "db_password",
            "passwd",
            "pwd",
            "pass",
        ),
        *(
            "passphrase",
            "secret",
            "client_secret",
            "clientSecret",
            "aws_secret_access_key",
            "aws_access_key_id",
        ),
        *(
            "token",
            "hf_token",
            "hfToken",
            "HF_TOKEN",
            "githubtoken",
            "access_token",
            "refresh_tokens",
            "bearer",
        ),
        *("credential", "credentials", "private_key", "access_key", "account_key", "Cookie", "set-cookie"),
        *("session_id", "jwt", "auth", "basic_auth", "http_auth", "SharedAccessSignature", "secrets"),
    ],
)
def test_a_name_of_a_credential_hides_its_value(name: str) -> None:
    """Two values give one identity, and neither is kept."""
    one, two = (fingerprint({"index": {name: value}}) for value in ("first-77", "second-88"))
    assert one == two
    assert one.omitted == (f"index.{name}",)
    assert "first" not in stored(one)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "tokens",
            "max_tokens",
            "maxTokens",
            "chunk_tokens",
            "tokenizer",
            "token_count",
            "tokens_per_chunk",
        ),
        *(
            "pad_token",
            "eosToken",
            "unk_token",
            "special_token",
            "query_token",
            "keys",
            "key",
            "partition_key",
        ),
        *("public_key", "text_key", "author", "authors", "auth_mode", "compass", "first_pass", "secretary"),
        *("api_key_env", "password_file", "secret_name", "secretKeyRef", "cookie_policy", "session"),
    ],
)
def test_a_name_that_only_looks_like_one_hides_nothing(name: str) -> None:
    """How text is cut, where a key is found, and words that contain others are part of the identity."""
    assert fingerprint({name: "a"}).config_hash != fingerprint({name: "b"}).config_hash
    assert fingerprint({name: "a"}).omitted == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            ("api_key", False),
            ("use_auth_token", True),
            ("token", 512),
            ("token", {"size": 512}),
            ("auth", "basic"),
        ),
        *(("token", "[CLS]"), ("token", "<s>"), ("auth", {"mode": "iam"}), ("password", None)),
    ],
)
def test_a_switch_a_number_or_a_special_token_is_no_credential(name: str, value: object) -> None:
    """`use_auth_token: true` and `token: 512` are settings."""
    assert not hides(name, value)


@pytest.mark.parametrize(
    "secret",
    [
        *("sk-test-AAAA1111", "sk-proj-abcDEF123456", "sk-ant-api03-abcdef-xyz", "sk-abcdefghijklmnop"),
        *("ghp_abcdef123456", "gho_abcdef123456", "github_pat_11ABC_def", "glpat-abc_DEF-123"),
        *(
            "AKIAIOSFODNN7EXAMPLE",
            "ASIAIOSFODNN7EXAMPLE",
            "xoxb-1234-abcd",
            "hf_AbCdEfGhIjKl",
            "AIzaSyA1234567890abcdef",
        ),
        *(
            JWT,
            f"Bearer {JWT}",
            "Bearer tok-123",
            "bearer secret",
            "Basic dXNlcjpwYXNz",
            "Token 9944b09199c62bcf",
        ),
        *(PEM, f"  {PEM}\n", "'sk-test-AAAA1111'", "sk_live_abc123DEF", "ApiKey VnVhQ2ZHY0JDZGJrUW0="),
    ],
)
def test_a_value_with_a_known_shape_is_left_out_under_any_name(secret: str) -> None:
    """In a mapping its key goes too, in a list it leaves a fixed mask, as a key likewise."""
    assert scrub(secret) is None
    found = fingerprint(
        {"note": secret, "list": ["a", secret], "quota": {secret: 3}, "embedder": {"model": "m"}}
    )
    assert found.document == {"list": ["a", "***"], "quota": {"***": 3}, "embedder": {"model": "m"}}
    assert found.omitted == ("list[1]", "note", "quota.***")


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("https://user:p4ss@db.example/idx", "https://db.example/idx"),
        ("https://token-only@db.example/idx", "https://db.example/idx"),
        ("redis://:p4ss@cache:6379/0", "redis://cache:6379/0"),
        ("postgres://u:pa/ss@h:5432/db", "postgres://h:5432/db"),
        ("postgres://u:p@ss@h:5432/db", "postgres://h:5432/db"),
        ("mongodb://u:p@h1:27017,h2:27017/db?tls=true", "mongodb://h1:27017,h2:27017/db?tls=true"),
        ("git+https://ghp_abcdef@github.com/o/r", "git+https://github.com/o/r"),
        ("see https://u:p@h/a, https://u:p@h/b", "see https://h/a, https://h/b"),
        ("https://h/idx?api_key=abc", "https://h/idx"),
        ("https://h/idx?v=1&api_key=abc&w=2#part", "https://h/idx?v=1&w=2#part"),
        ("https://h/cb#access_token=abc", "https://h/cb"),
        ("https://h/blob?sv=2&sig=abc%3D", "https://h/blob?sv=2"),
        ("user:p4ss@tcp(db:3306)/idx", "tcp(db:3306)/idx"),
        ("user:p4ss@db.example:5432/idx", "db.example:5432/idx"),
        ("host=db password=p4ss user=u", "host=db password=*** user=u"),
        ("AccountName=x;AccountKey=abc==;End=core", "AccountName=x;AccountKey=***;End=core"),
        ("run --api-key=abc --k 5", "run --api-key=*** --k 5"),
        ("Authorization: Bearer abc", "Authorization: ***"),
        ("curl -H 'Authorization: Basic abc' h", "curl -H 'Authorization: ***' h"),
        ("X-Api-Key: abc", "X-Api-Key: ***"),
        ('{"api_key": "abc", "k": 5}', '{"api_key": "***", "k": 5}'),
        ("use ghp_abcdef123456 here", "use *** here"),
        (f"cert\n{PEM}\nend", "cert\n***\nend"),
    ],
)
def test_a_credential_inside_text_goes_and_the_text_stays(text: str, clean: str) -> None:
    """The host stays in a URL; elsewhere a fixed mask stands, which is never touched again."""
    assert scrub(text) == clean
    assert scrub(clean) == clean
    assert fingerprint({"x": text}).omitted == ("x",)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "Use a Bearer token to log in.",
            "Bearer token",
            "Bearer of good news",
            "Basic English",
            "Basic authentication",
        ),
        *(
            "0123456789abcdef0123456789abcdef01234567",
            "d41d8cd98f00b204e9800998ecf8427e",
            "sk-SK",
            "sk-learn",
        ),
        *(
            "org/sk-model-base-v2",
            "image:v1.2@sha256:deadbeef",
            "m1:base@v2",
            "git@github.com:o/r",
            "mailto:a@b.com",
        ),
        *("https://h/@scope/pkg", "http://[::1]:80/a@b", "http://h:8080/a@b", "https://h/x?k=5&q=a@b"),
        *(
            "max_tokens=5",
            "password={password}",
            "Answer: {answer}",
            "hf_embeddings",
            "task-force",
            "eyJ",
            "a=b",
        ),
        *(
            "The password: ask the user for it.",
            "12:30@noon",
            "asia-northeast1",
            "ASIAN MARKETS",
            "k=5; secret santa",
        ),
    ],
)
def test_text_that_is_no_credential_stays_as_it_is(text: str) -> None:
    """Prose, revisions, model names, digests, templates and addresses are part of the identity."""
    assert scrub(text) == text


def test_a_model_may_be_called_like_a_key() -> None:
    """`sk` is a language too: under the name of a model it takes more to be taken for a key."""
    assert fingerprint({"model": "sk-bert-base-v2"}).document == {"model": "sk-bert-base-v2"}
    assert fingerprint({"model": "sk-proj-abcdefghij1234567890"}).document == {}


@pytest.mark.parametrize(
    ("config", "document"),
    [
        (
            {"headers": [["Authorization", "abc"], ["Accept", "x"]]},
            {"headers": [["Authorization", "***"], ["Accept", "x"]]},
        ),
        ({"headers": [{"name": "X-Api-Key", "value": "abc"}]}, {"headers": [{"name": "X-Api-Key"}]}),
        ({"filter": {"key": "tenant", "value": "acme"}}, {"filter": {"key": "tenant", "value": "acme"}}),
        ({"args": ["--api-key", "abc", "--k", "5"]}, {"args": ["--api-key", "***", "--k", "5"]}),
        ({"api_keys": ["a", "b"], "n": 1}, {"n": 1}),
        ({"credentials": {"user": "u", "key": "k"}, "n": 1}, {"n": 1}),
        ({"token": {"value": "abc", "ttl": 5}}, {"token": {"ttl": 5}}),
        ({"auth": ("user", "p4ss"), "n": 1}, {"n": 1}),
        ({"password": 12345, "n": 1}, {"n": 1}),
        ({"token": b"abc", "n": 1}, {"n": 1}),
        ({"client": {"api_key": object()}}, {"client": {}}),
        ({"a": pydantic.SecretStr("abc"), "n": 1}, {"n": 1}),
        ({"list": [pydantic.SecretStr("abc")]}, {"list": ["***"]}),
        ({"set": {"ghp_abcdef123456", "a"}}, {"set": ["***", "a"]}),
    ],
)
def test_credentials_are_found_wherever_they_stand(config: dict[str, Any], document: dict[str, Any]) -> None:
    """In pairs, in options of a command, in lists, in wrappers, and where no text stands at all."""
    assert fingerprint(config).document == document


def test_keys_that_were_credentials_keep_their_values() -> None:
    """A quota per key counts, whichever the keys are and in whatever order."""
    one = fingerprint({"ghp_aaaaaa111111": 1, "ghp_bbbbbb222222": 2})
    two = fingerprint({"ghp_cccccc333333": 2, "ghp_dddddd444444": 1})
    assert one.document == {"***": [1, 2]}
    assert one == two


def test_a_section_that_held_only_credentials_stays() -> None:
    """That it is there may say which provider is used."""
    assert (
        fingerprint({"openai": {"api_key": "a"}}).config_hash
        != fingerprint({"cohere": {"api_key": "a"}}).config_hash
    )


def test_the_parameters_of_a_live_object_hide_theirs() -> None:
    """The same rules hold for what an object was made with."""

    class Client:
        def __init__(self, api_key: str, url: str) -> None:
            self.api_key = api_key
            self.url = url

    found = fingerprint({"client": Client("sk-test-AAAA1111", "https://u:p4ss@h/x")}, strict=False)
    assert found.omitted == ("client.api_key", "client.url")
    assert "AAAA1111" not in stored(found)
    assert "p4ss" not in stored(found)


def test_paths_the_user_names_are_left_out() -> None:
    """By pattern, at any depth, whatever stands there."""
    config = {"index": {"license": "abc", "shards": [{"pin": 1}, {"pin": 2}]}, "n": 1, "salts": ["a", "b"]}
    found = fingerprint(config, secret_paths=["index.license", "**.pin", "salts.*"])
    assert found.document == {"index": {"shards": [{}, {}]}, "n": 1, "salts": ["***", "***"]}
    assert found.omitted == (
        "index.license",
        "index.shards[0].pin",
        "index.shards[1].pin",
        "salts[0]",
        "salts[1]",
    )


def test_a_bad_pattern_of_the_user_is_refused() -> None:
    """The message says what a pattern looks like."""
    with pytest.raises(ConfigError, match="secret_paths: a pattern has a step between any two dots"):
        fingerprint({}, secret_paths=["index..key"])


def test_a_refusal_prints_no_credential() -> None:
    """A path may lead through a key that is one."""
    with pytest.raises(UnstableValueError) as refused:
        fingerprint({"ghp_abcdef123456": {"client": object()}})
    assert str(refused.value).startswith("***.client: ")
