"""The names that credentials go under: `api_key`, `Authorization`, `password`, but not `max_tokens`."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

MASK = "***"

# Names that end so (letters and digits only) hide whatever they hold, but a boolean.
_ALWAYS = (
    *("apikey", "apikeys", "accesskey", "accesskeyid", "secretkey", "privatekey", "accountkey", "authkey"),
    *("subscriptionkey", "signingkey", "encryptionkey", "masterkey", "sharedkey", "consumerkey", "adminkey"),
    *("sshkey", "secret", "secrets", "password", "passwords", "passwd", "pwd", "passphrase", "passcode"),
    *("authorization", "credential", "credentials", "cookie", "cookies", "sessionid", "accesssignature"),
    *("accesstoken", "accesstokens", "authtoken", "authtokens", "apitoken", "apitokens", "bearertoken"),
    *("bearertokens", "refreshtoken", "refreshtokens", "sessiontoken", "securitytoken", "sastoken"),
)
_ALONE = {"jwt", "bearer"}
# Words that stand after the name of a credential and change nothing.
_AFTER = {"old", "new", "prod", "dev", "staging", "primary", "secondary", "backup", "value", "plain", "raw"}
# `x_token` for such an x is a piece of text or a number, and part of how text is cut.
_TEXT_TOKENS = {
    *("pad", "eos", "bos", "unk", "sep", "mask", "cls", "stop", "start", "begin", "end", "special", "added"),
    *("query", "doc", "document", "passage", "image", "chunk", "context", "prompt", "completion", "split"),
    *("input", "output", "max", "min", "per", "num", "n", "total", "first", "last", "next", "sub", "word"),
    *("text", "separator", "delimiter", "prefix", "suffix", "padding", "unknown", "classification"),
}
_PASS_OWNERS = {
    "",
    "db",
    "user",
    "redis",
    "pg",
    "mysql",
    "postgres",
    "mongo",
    "smtp",
    "http",
    "proxy",
    "admin",
}
_AUTH_MODES = {
    *("none", "basic", "digest", "bearer", "oauth", "oauth2", "iam", "ntlm", "kerberos", "token", "apikey"),
}
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SPECIAL_TOKEN = re.compile(r"[\[<].*[\]>]")

# `{"name": "X-Api-Key", "value": "..."}` says the name of what it holds beside it.
NAME_KEYS = ("name", "key", "header", "field")
VALUE_KEYS = frozenset({"value", "val", "secret", "plain", "raw"})

_LONGEST_NAME = 64


@lru_cache(maxsize=8192)
def _kind(name: str) -> Literal["always", "token", "auth", "pass"] | None:
    """Say how a name hides what it holds."""
    words = [word.lower() for word in _WORD.findall(name)]
    while words and (words[-1].isdigit() or (len(words) > 1 and words[-1] in _AFTER)):
        words.pop()
    if not words:
        return None
    owner, last, squashed = words[-2] if len(words) > 1 else "", words[-1], "".join(words)
    if squashed.endswith(_ALWAYS) or squashed in _ALONE:
        return "always"
    if last == "auth":
        return "auth"
    if last == "pass" and owner in _PASS_OWNERS:
        return "pass"
    if last.endswith("token") and (last.removesuffix("token") or owner) not in _TEXT_TOKENS:
        return "token"
    return None


def hides(name: str, value: object) -> bool:
    """Say whether a key's name makes its value a credential.

    `api_key`, `password`, `Authorization` and their like hide anything but a boolean or null; `token`,
    `auth` and `pass` hide text only, since `tokenizer`, `max_tokens` and `token: 512` are how text is cut.
    """
    kind = _kind(name)
    if kind is None or value is None or isinstance(value, bool):
        return False
    if kind == "always":
        return True
    if isinstance(value, (list, tuple, set, frozenset)):
        return bool(value) and all(isinstance(item, str) and hides(name, item) for item in value)
    if isinstance(value, str):
        return not _is_plain_word(kind, value)
    return isinstance(value, (bytes, bytearray))


def _is_plain_word(kind: str, value: str) -> bool:
    """Special tokens (`[CLS]`, `<s>`) and names of ways to log in are no credentials."""
    if kind == "token":
        return _SPECIAL_TOKEN.fullmatch(value) is not None
    return kind == "auth" and value.lower() in _AUTH_MODES


def names_a_secret(name: object) -> bool:
    """Say whether text is the name of a credential, as in `["--api-key", ...]` or a pair of a header."""
    return (
        isinstance(name, str)
        and len(name) <= _LONGEST_NAME
        and _kind(name.strip("-: ")) in ("always", "token")
    )
