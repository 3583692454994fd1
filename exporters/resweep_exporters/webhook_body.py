"""What a webhook says: the object `resweep.flag/1`, as it is or in the form that starts a CI pipeline."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Literal, NamedTuple
from urllib.parse import urlencode

import msgspec

from resweep.domain.verdict import Flag

FLAG_SCHEMA = "resweep.flag/1"
BODY_MAX = 48_000  # bytes; GitHub takes 64 kB together with its own fields
SIGNATURE_HEADER = "X-Resweep-Signature"

Kind = Literal["opened", "cleared"]
Format = Literal["generic", "github", "gitlab"]


class Call(NamedTuple):
    """The body of one call and the headers that describe it."""

    body: bytes
    headers: Mapping[str, str]


def delivery_id(flag: Flag, kind: Kind) -> str:
    """Return the same 32 hex digits for each attempt at one opening or clearing of one flag."""
    text = msgspec.json.encode([flag.key, flag.pipeline, flag.opened_ts, kind])
    return hashlib.sha256(text).hexdigest()[:32]


def payload(flag: Flag, kind: Kind) -> dict[str, object]:
    """Return the object `resweep.flag/1`; equal for each attempt. Evidence too large to send is left out."""
    whole = _payload(flag, kind, flag.evidence)
    if len(_encode(whole)) <= BODY_MAX:
        return whole
    return _payload(flag, kind, {"omitted": f"more than {BODY_MAX} bytes: see the agent"})


def compose(flag: Flag, kind: Kind, form: Format, token: str, ref: str) -> Call:
    """Return the call that tells a flag in one of the formats."""
    if form == "github":
        return _github(payload(flag, kind), token)
    if form == "gitlab":
        return _gitlab(payload(flag, kind), token, ref)
    return Call(_encode(payload(flag, kind)), {"Content-Type": "application/json"})


def sign(secret: str, timestamp: int, body: bytes) -> str:
    """Return the signature header's value: HMAC-SHA256 over `timestamp.body`, in hex."""
    mac = hmac.new(secret.encode(), b"%d." % timestamp + body, hashlib.sha256)
    return f"t={timestamp},v1={mac.hexdigest()}"


def verify(secret: str, header: str, body: bytes, now: float, tolerance: float = 300.0) -> bool:
    """Return whether a received signature is right and at most `tolerance` seconds from `now`."""
    stamp = header.partition(",")[0].removeprefix("t=")
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) <= 15):
        return False
    right = sign(secret, int(stamp), body)
    return hmac.compare_digest(right.encode(), header.encode()) and abs(now - int(stamp)) <= tolerance


def _payload(flag: Flag, kind: Kind, evidence: Mapping[str, object]) -> dict[str, object]:
    return {
        "schema": FLAG_SCHEMA,
        "id": delivery_id(flag, kind),
        "event": kind,
        "ts": flag.opened_ts if kind == "opened" else flag.cleared_ts,
        "flag": {
            "key": flag.key,
            "pipeline": flag.pipeline,
            "config": flag.config,
            "basis": flag.basis,
            "reason": flag.reason,
            "layer": flag.layer,
            "components": flag.components,
            "severity": flag.severity,
            "message": flag.message,
            "opened_ts": flag.opened_ts,
            "onset_ts": flag.onset_ts,
            "cleared_ts": flag.cleared_ts,
            "evidence": evidence,
            "next_command": flag.next_command,
        },
    }


def _encode(value: object) -> bytes:
    return msgspec.json.encode(value, enc_hook=str)


def _github(told: dict[str, object], token: str) -> Call:
    # https://docs.github.com/rest/repos/repos#create-a-repository-dispatch-event: at most ten keys in
    # client_payload, so the object goes in as one.
    body = {"event_type": f"resweep_flag_{told['event']}", "client_payload": {"resweep": told}}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/vnd.github+json",
        "Authorization": f"Bearer {token}",
    }
    return Call(_encode(body), headers)


def _gitlab(told: dict[str, object], token: str, ref: str) -> Call:
    # https://docs.gitlab.com/ci/triggers/: a form with token, ref and variables.
    flag = told["flag"]
    assert isinstance(flag, dict)
    variables = {
        "RESWEEP_EVENT": told["event"],
        "RESWEEP_ID": told["id"],
        "RESWEEP_COMPONENTS": ",".join(flag["components"]),
        "RESWEEP_FLAG": _encode(told).decode(),
    }
    variables |= {f"RESWEEP_{name.upper()}": flag[name] for name in _AS_VARIABLES}
    form = {"token": token, "ref": ref} | {f"variables[{name}]": value for name, value in variables.items()}
    return Call(urlencode(form).encode(), {"Content-Type": "application/x-www-form-urlencoded"})


_AS_VARIABLES = ("pipeline", "config", "basis", "reason", "severity", "next_command")
