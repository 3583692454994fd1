"""Credentials by their looks: found inside any text, and taken out of it.

Nothing here keeps, hashes or returns a part of what it takes out. A bare run of hex digits is never taken
for a secret: it may be a revision.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable

from resweep.domain.secrets import MASK, hides, names_a_secret

_SHORTEST = 6  # characters of the shortest text that can hold a credential with its prefix
_LONG = 16
_PASSES = 2

# The model or the language called `sk-...` must not vanish for looking like a key.
_MODEL_NAMES = ("model", "modelname", "modelid", "revision", "language", "lang", "locale", "tokenizer")
_SK = re.compile(r"(?<![\w/-])sk-(?:(?=[\w-]*[0-9A-Z])[\w-]{6,}|[\w-]{12,})", re.A)
_PREFIXED = re.compile(
    r"(?<![A-Za-z0-9_-])(?:"
    r"sk-(?=[\w-]*\d)[\w-]{20,}|(?:sk|rk|pk)_(?:live|test)_\w{6,}"
    r"|gh[pousr]_\w{6,}|github_pat_\w{6,}|glpat-[\w-]{6,}"
    r"|AKIA[0-9A-Z]{8,}|ASIA(?=[A-Z]*\d)[0-9A-Z]{12,}"
    r"|eyJ[\w-]{4,}\.[\w-]{4,}(?:\.[\w-]*){1,3}"
    r"|xox[a-z]-[\w-]{6,}|xapp-[\w-]{6,}"
    r"|hf_(?:(?=[A-Za-z]*\d|[a-z]*[A-Z])[A-Za-z0-9]{10,}|[A-Za-z]{30,})"
    r"|AIza[\w-]{16,}|ya29\.[\w-]{10,}|GOCSPX-[\w-]{10,}"
    r"|SG\.[\w-]{10,}\.[\w-]{10,}|lsv2_[a-z]{2}_\w{10,}|pcsk_\w{10,}|nvapi-[\w-]{20,}"
    r"|(?:gsk|npm|xai|r8|tvly|jina)[_-](?=[A-Za-z]*\d)\w{20,}|hvs\.[\w-]{10,}"
    r")",
    re.A,
)
_PEM = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]{0,40}-----|\Z)", re.S
)

_URLS = re.compile(r"(?<=://)[^\s\"'<>]+")
_AUTHORITY = re.compile(r"[^/?#]*")
# A password with a slash in it makes no valid URL, and is common: after `user:` no port, but text up to an @.
_ODD_USERINFO = re.compile(r"[^/?#@:\[]*:(?!\d{1,5}(?:[/?#]|\Z)).+@")
_BARE_USERINFO = re.compile(
    r"(?!(?:mailto|sip|sips|xmpp|acct):)[^\s:@/]{1,128}:[^\s@]{1,256}@"
    r"(?=(?:tcp|unix)\(|[\w.-]+:\d{2,5}(?:[/?]|\Z)|(?:[\w-]+\.)+[A-Za-z]{2,24}(?:[/?]|\Z))"
)
# Names of URL parameters that hide; the second group only where the value is long.
_PARAMETERS = {"sig", "signature", "xamzsignature", "xamzcredential", "awsaccesskeyid", "jwt"}
_LONG_PARAMETERS = {"key", "code", "sas"}

_HEADER = re.compile(
    r"(?<!\w)((?:proxy-)?authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?)"
    r"(?:bearer|basic|token|api-?key|digest|negotiate)\s+[^\s\"',;]+",
    re.I,
)
_WHOLE_HEADER = re.compile(r"\s*([\w-]{1,64}):\s*\S+\s*")
_SCHEME = re.compile(r"(?:token|api-?key|digest|negotiate)\s+(?=\S*\d)\S{8,}", re.I)
_BEARER = re.compile(r"(?<!\w)bearer\s{1,4}([\w.~+/=-]+)", re.I | re.A)
# What follows "Bearer" where a person speaks of it.
_BEARER_WORDS = {
    "token",
    "tokens",
    "auth",
    "authentication",
    "authorization",
    "scheme",
    "jwt",
    "of",
    "format",
}
_BASIC = re.compile(r"(?<!\w)basic\s{1,4}([A-Za-z0-9+/_-]{4,}={0,2})", re.I | re.A)

_ASSIGNED = re.compile(
    r"(?<![\w.-])((?:--)?[A-Za-z][\w.-]{1,63})(\s{0,3}=\s{0,3})"
    r"(\"[^\"]{1,1024}\"|'[^']{1,1024}'|[^\s;&\"'{$<(\[*][^\s;&\"']{0,1024})"
)
_QUOTED = re.compile(r"([\"'])([\w.-]{2,64})\1(\s{0,3}:\s{0,3})([\"'])((?:(?!\4)[^\\]|\\.){1,1024})\4")
_ONLY_MASKS = re.compile(r"[\s\"']*(?:\*\*\*[\s\"']*)+")


def scrub(text: str, name: str = "") -> str | None:
    """Return text without the credentials in it; None where it is nothing else.

    User-info and secret parameters leave a URL, whose host stays. `name` is the key it stands under.
    """
    if len(text) < _SHORTEST:
        return text
    clean = _once(text, name)
    if clean == text:
        return text
    for _ in range(_PASSES):  # what one step leaves may be read otherwise by an earlier one
        clean = _once(clean, name)
    return None if _ONLY_MASKS.fullmatch(clean) else clean


def _once(text: str, name: str) -> str:
    for step in _STEPS:
        text = step(text)
    return text if _names_a_model(name) else _SK.sub(MASK, text)


def _names_a_model(name: str) -> bool:
    return bool(name) and re.sub("[^a-z]", "", name.lower()).endswith(_MODEL_NAMES)


def _pem(text: str) -> str:
    return _PEM.sub(MASK, text) if "PRIVATE KEY" in text else text


def _prefixed(text: str) -> str:
    return _PREFIXED.sub(MASK, text)


def _urls(text: str) -> str:
    if "://" in text:
        return _URLS.sub(lambda url: "://".join(map(_clean_url, url[0].split("://"))), text)
    return _BARE_USERINFO.sub("", text, count=1) if _BARE_USERINFO.match(text) else text


def _clean_url(url: str) -> str:
    """Return what follows a URL's `://` without user-info and secret parameters."""
    if "@" in url:
        url = _without_userinfo(url)
    place = min((found for found in (url.find("?"), url.find("#")) if found >= 0), default=len(url))
    return url[:place] + _without_secret_parameters(url[place:])


def _without_userinfo(url: str) -> str:
    authority = _AUTHORITY.match(url)
    if authority and "@" in authority[0]:
        return url[authority[0].rindex("@") + 1 :]
    return _ODD_USERINFO.sub("", url, count=1) if _ODD_USERINFO.match(url) else url


def _without_secret_parameters(tail: str) -> str:
    """Take secret parameters out of a URL's query and fragment; a URL with none stays as it is."""
    query, mark, fragment = tail.partition("#")
    kept = _kept("?", query[1:]) if query else ""
    return kept + (_kept("#", fragment) if mark else "")


def _kept(mark: str, parameters: str) -> str:
    every = parameters.split("&")
    kept = [parameter for parameter in every if not _is_secret_parameter(parameter)]
    return mark + "&".join(kept) if kept else ""


def _is_secret_parameter(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    if not value:
        return False
    squashed = re.sub("[^a-z0-9]", "", name.lower())
    if squashed in _LONG_PARAMETERS:
        return len(value) >= _LONG
    return squashed in _PARAMETERS or hides(name, value)


def _headers(text: str) -> str:
    text = _HEADER.sub(lambda header: header[1] + MASK, text)
    header = _WHOLE_HEADER.fullmatch(text)
    if header and names_a_secret(header[1]):
        return f"{header[1]}: {MASK}"
    return MASK if _SCHEME.fullmatch(text) else text


def _bearer(text: str) -> str:
    def masked(found: re.Match[str]) -> str:
        token = found[1]
        alone = found.span() == (0, len(text)) and token.lower() not in _BEARER_WORDS
        opaque = len(token) >= 20 or (len(token) >= 6 and any(map(str.isdigit, token)))
        return MASK if alone or opaque else found[0]

    return _BEARER.sub(masked, text)


def _basic(text: str) -> str:
    return _BASIC.sub(lambda found: MASK if _is_user_and_password(found[1]) else found[0], text)


def _is_user_and_password(encoded: str) -> bool:
    bare = encoded.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return b":" in base64.b64decode(bare + "=" * (-len(bare) % 4))
    except binascii.Error:
        return False


def _quoted_members(text: str) -> str:
    def masked(found: re.Match[str]) -> str:
        quote, name, colon, mark, value = found.groups()
        return f"{quote}{name}{quote}{colon}{mark}{MASK}{mark}" if hides(name, value) else found[0]

    return _QUOTED.sub(masked, text) if ":" in text else text


def _assignments(text: str) -> str:
    def masked(found: re.Match[str]) -> str:
        return f"{found[1]}{found[2]}{MASK}" if names_a_secret(found[1]) else found[0]

    return _ASSIGNED.sub(masked, text) if "=" in text else text


_STEPS: tuple[Callable[[str], str], ...] = (
    *(_pem, _urls, _headers, _bearer, _basic, _quoted_members, _assignments, _prefixed),
)
