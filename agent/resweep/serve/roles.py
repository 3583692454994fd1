"""What each role may do over the API. What is not named here is for admins, and for recorders.

A question of a user is for reviewers: viewers see numbers, verdicts, configs and flags.
"""

from __future__ import annotations

import re
from typing import Literal

Role = Literal["viewer", "reviewer", "admin"]
RANK: dict[Role, int] = {"viewer": 0, "reviewer": 1, "admin": 2}

_VIEWER = re.compile(
    r"GET /(metrics|v1/(status|flags|configs|accept|tuned|maintenance|reports|sweeps|cases/progress))"
)
_REVIEWER = re.compile(
    r"GET /v1/(canaries|cases(/(lines|export|repairs|[^/]+))?|reports/[^/]+)"
    r"|POST /v1/(cases/(next|undo|[^/]+/(judge|confirm|finish|keep|open|release))|flags/.+/ack)"
)


def needed(method: str, path: str) -> Role:
    """Return the least role that may call a method on a path of the API."""
    call = f"{'GET' if method == 'HEAD' else method} {path.rstrip('/')}"
    if _VIEWER.fullmatch(call):
        return "viewer"
    return "reviewer" if _REVIEWER.fullmatch(call) else "admin"


def may(role: Role, wanted: Role) -> bool:
    """Whether one role may do what another may."""
    return RANK[role] >= RANK[wanted]
