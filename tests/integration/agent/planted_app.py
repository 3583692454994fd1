"""A service full of secrets: one in every place where a recorder could pick one up. Started by a test."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import resweep
from resweep.redact import standard

LBL = "mail jane@example.com about card 4111 1111 1111 1111, order 20260501123456789"


@dataclass
class Passage:
    """A passage as frameworks have them."""

    page_content: str
    metadata: dict[str, object] = field(default_factory=dict)


class Hostile:
    """An object that tells a secret to whoever looks at it the wrong way."""

    def __init__(self, secret: str) -> None:
        self.secret = secret

    def __repr__(self) -> str:
        return f"Hostile({self.secret})"

    __str__ = __repr__

    @property
    def name(self) -> str:
        """Raise, with the secret in the message."""
        raise RuntimeError(f"no name for {self.secret}")

    def invoke(self, query: str) -> list[Any]:
        """Retrieve."""
        return [self]


def config(secrets: dict[str, str]) -> dict[str, object]:
    """Return a config with credentials in the places where people put them."""
    return {
        "api_key": secrets["api_key"],
        "index_url": f"https://user:{secrets['password']}@db.example/idx",
        "headers": {"Authorization": f"Bearer {secrets['bearer']}"},
        "generator": {"model": "m1", "openai_api_key": secrets["api_key"]},
        "context_k": 2,
    }


def raising(secret: str) -> Callable[..., Any]:
    """Return a hook of the user's that fails and says too much."""

    def hook(*args: object, **kwargs: object) -> Any:
        raise ValueError(f"{secret} {args} {kwargs}")

    return hook


def main() -> None:
    """Record retrievals of every kind around the secrets given as JSON."""
    given = json.loads(sys.argv[1])
    logging.basicConfig(filename=given["log"], level=logging.DEBUG)
    said: dict[str, str] = given["secrets"]
    resweep.configure(spans=given["collector"], sample_rate=1.0)

    def retrieve(query: str, k: int = 2, **kwargs: object) -> list[dict[str, object]]:
        if "fail" in query:
            raise ConnectionError(f"{said['exception']} while asking {query}")
        metadata = {"source": "a.md", "author": said["metadata"], said["metadata"]: 1}
        return [
            {"id": f"p{at}", "score": 0.9 - at / 10, "text": said["passage"], "metadata": metadata}
            for at in range(k)
        ]

    async def later(query: str) -> list[Passage]:
        return [Passage(said["passage"], {"source": "a.md", "note": said["metadata"]})]

    def streamed(query: str) -> Iterator[Passage]:
        yield Passage(said["passage"])
        yield Passage(said["passage"] + " more")

    mode: dict[str, Any] = {
        "capture": given["capture"],
        "redact": standard if given["capture"] != "none" else None,
    }
    planted = resweep.watch(retrieve, pipeline="planted", config=config(said), **mode)
    hooks: dict[str, Any] = {name: raising(said["hook"]) for name in ("extract", "user_key", "tokens")}
    hooked = resweep.watch(retrieve, pipeline="hooked", config={"context_k": 2}, **hooks)
    broken = resweep.watch(
        retrieve, pipeline="broken", config={"context_k": 2}, capture="text", redact=raising(said["hook"])
    )
    hostile = resweep.watch(Hostile(said["object"]), pipeline="hostile", config=Hostile(said["object"]))
    streaming = resweep.watch(streamed, pipeline="streaming", config={"context_k": 2})
    waiting = resweep.watch(later, pipeline="waiting", config={"context_k": 2})
    questions: tuple[Any, ...] = (said["query"], LBL, {"query": said["query"]}, f"{said['query']} fail")
    for question in questions:
        for watched in (planted, hooked) if given["capture"] == "none" else (planted,):
            with contextlib.suppress(ConnectionError):
                watched(question, filter={"owner": said["filter"], "nested": {"$in": [said["filter"]]}})
                resweep.note(response_model="m1", note=said["query"], stop="enough")
    if given["capture"] == "none":
        broken(said["query"])
        hostile.invoke(said["query"])
        list(streaming(said["query"]))
        next(iter(streaming(said["query"])))
        asyncio.run(waiting(said["query"]))
    resweep.feedback(resweep.current_event_id(), "negative", rater="r1")
    resweep.flush(10)
    resweep.shutdown(10)


if __name__ == "__main__":
    main()
