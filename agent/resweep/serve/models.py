"""Generators and judges: a user's callable, or an OpenAI-compatible endpoint over HTTP."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from resweep.domain.errors import UsageError
from resweep.serve.named import load_object
from resweep.sweep.answers import Generate, Judge, Model, Said, ToJudge, Verdict
from resweep.sweep.calls import CallFailedError

ANSWER = (
    "Answer the question from the passages alone. Where they do not hold the answer, say that you do not "
    "know. Be brief."
)
CITE = " Cite each passage that you use by its number in brackets, as in [2], and no other."
UNAIDED = "Answer the question. Where you do not know the answer, say so. Be brief."
RUBRIC = (
    "You judge an answer against a reference. It is correct if it states what the reference states and "
    "nothing that contradicts it; wording, order and extra detail do not matter. An answer that declines is "
    'not correct. Reply with one JSON object: {"reason": "one sentence", "correct": true or false}.'
)
AGAIN = frozenset((408, 409, 425, 429, 500, 502, 503, 504, 529))  # a later try may do
WAIT_MOST_S = 60.0


class ChatModel:
    """One model behind `POST {url}/chat/completions`, not streaming. `timeout_s` bounds each call."""

    def __init__(self, url: str, model: str, key: str | None, timeout_s: float) -> None:
        self._url = url.rstrip("/")
        if not self._url.endswith("/chat/completions"):
            self._url += "/chat/completions"
        self._model = model
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self._http = httpx.Client(headers=headers, timeout=timeout_s)

    def chat(self, system: str, user: str) -> Said:
        """Return what the model says to instructions and a text of the user's. Raises as `ask` does."""
        return self.ask([{"role": "system", "content": system}, {"role": "user", "content": user}])

    def ask(self, messages: Sequence[Mapping[str, str]]) -> Said:
        """Return what the model says. Raises CallFailedError, with how long the server asks to wait."""
        body = {
            "model": self._model,
            "temperature": 0,
            "stream": False,
            "messages": list(messages),
        }
        try:
            response = self._http.post(self._url, json=body)
        except httpx.HTTPError as error:
            raise CallFailedError(f"{self._url}: {type(error).__name__}: {error}") from None
        if response.status_code != 200:
            raise CallFailedError(
                f"{self._url} answered {response.status_code}: {response.text[:200]}",
                again=response.status_code in AGAIN,
                after_s=_retry_after(response),
            )
        return _said(self._url, response)


def _retry_after(response: httpx.Response) -> float | None:
    """Return the seconds that a server asks to wait: a number, or a date by the server's own clock."""
    told = response.headers.get("retry-after", "")
    try:
        seconds = float(told)
    except ValueError:
        until, now = (_unix(response.headers.get(name, "")) for name in ("retry-after", "date"))
        if until is None:
            return None
        seconds = until - (time.time() if now is None else now)
    return min(WAIT_MOST_S, max(0.0, seconds)) if math.isfinite(seconds) else None


def _unix(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None


def _said(url: str, response: httpx.Response) -> Said:
    try:
        told = response.json()
        message = told["choices"][0]["message"]
        text, role = message["content"], message.get("role", "assistant")
        usage = told.get("usage") or {}
        taken = int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise CallFailedError(f"{url}: expected a chat completion; {type(error).__name__}: {error}") from None
    if role != "assistant" or not isinstance(text, str):
        # kept as an empty answer it would be judged wrong, and held for ever
        got = f"role {role!r:.40}, content {type(text).__name__}"
        raise CallFailedError(f"{url}: expected the text of an assistant; got {got}", taken=taken)
    return Said(text, *taken)


def prompt(question: str, passages: Sequence[str]) -> str:
    """Return the question with its passages, numbered in the order they were retrieved."""
    shown = "".join(f"[{n}] {text}\n\n" for n, text in enumerate(passages, 1))
    return f"{shown}Question: {question}" if passages else f"Question: {question}"


def judging(asked: ToJudge) -> str:
    """Return what a judge reads."""
    return f"Question: {asked.question}\n\nReference: {asked.reference}\n\nAnswer: {asked.answer}"


def verdict_in(said: Said) -> Verdict:
    """Return the verdict in what a judge said. Raises CallFailedError where there is none; again may help.

    A judge that says both right and wrong has not decided.
    """
    told = [one for one in objects_in(said.text) if isinstance(one.get("correct"), bool)]
    if told and all(one["correct"] is told[0]["correct"] for one in told):
        reason = str(told[-1].get("reason", ""))[:2000]
        return Verdict(told[0]["correct"], reason, said.prompt_tokens, said.completion_tokens)
    raise CallFailedError(
        f'expected one {{"reason", "correct"}} from the judge; got {said.text[:200]!r}',
        taken=(said.prompt_tokens, said.completion_tokens),
    )


def objects_in(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in a text; one inside another is part of it."""
    at, decode = text.find("{"), json.JSONDecoder().raw_decode
    while at >= 0:
        try:
            found, end = decode(text, at)
        except (ValueError, RecursionError):
            found, end = None, at + 1
        if isinstance(found, dict):
            yield found
        at = text.find("{", end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A model as the command names it: `module:object`, or a URL with a model's name."""

    target: str
    model: str | None = None
    version: str = ""
    usd_per_million: float | None = None

    @property
    def remote(self) -> bool:
        """Return whether it is behind HTTP."""
        return self.target.startswith(("http://", "https://"))

    def known(self) -> Model:
        """Return its name and version. Raises UsageError for an endpoint without a model."""
        if self.remote and not self.model:
            raise UsageError(f"expected the model's name beside {self.target}; give it as URL#MODEL")
        return Model(
            name=f"{self.target} {self.model or ''}".strip(),
            version=self.version,
            usd_per_million=self.usd_per_million,
        )


def parse_model(text: str, version: str = "", usd_per_million: float | None = None) -> Named:
    """Return the model that `module:object` or `https://host/v1#model` names."""
    if text.startswith(("http://", "https://")):
        url, _, model = text.partition("#")
        return Named(target=url, model=model or None, version=version, usd_per_million=usd_per_million)
    return Named(target=text, version=version, usd_per_million=usd_per_million)


def key_of(variable: str) -> str | None:
    """Return the key of an endpoint, from a variable of its own or the usual one; never from a flag."""
    return os.environ.get(variable) or os.environ.get("OPENAI_API_KEY")


def chat_model(named: Named, variable: str, timeout_s: float) -> ChatModel:
    """Return the endpoint of a model, its key from a variable. Raises UsageError without the model's name."""
    return ChatModel(named.target, named.known().name.rpartition(" ")[2], key_of(variable), timeout_s)


def generator(named: Named, timeout_s: float, *, cite: bool = False) -> Generate:
    """Return what makes answers. A callable takes question and passages and returns a text.

    Or a mapping with `text` and `citations`: the places, from 1, of the passages it used. `cite`: an endpoint
    is asked to cite passages by their numbers.
    """
    if named.remote:
        chat = chat_model(named, "RESWEEP_GENERATOR_KEY", timeout_s)
        told = ANSWER + CITE if cite else ANSWER
        return lambda question, passages: chat.chat(told if passages else UNAIDED, prompt(question, passages))
    own = _callable(named.target)
    return lambda question, passages: _text(named.target, own(question, list(passages)))


def judge(named: Named, timeout_s: float) -> Judge:
    """Return what judges. A callable takes question, answer and reference, and returns right or wrong.

    It may return a bool, `(bool, reason)`, or a mapping with `correct` and `reason`.
    """
    if named.remote:
        chat = chat_model(named, "RESWEEP_JUDGE_KEY", timeout_s)
        return lambda asked: verdict_in(chat.chat(RUBRIC, judging(asked)))
    own = _callable(named.target)
    return lambda asked: _ruled(named.target, own(asked.question, asked.answer, asked.reference))


def _callable(name: str) -> Callable[..., Any]:
    found = load_object(name)
    if not callable(found):
        raise UsageError(f"{name}: expected a function; got {type(found).__qualname__}")
    called: Callable[..., Any] = found
    return called


def _text(name: str, answer: object) -> Said:
    if isinstance(answer, str):
        return Said(answer)
    fields = answer if isinstance(answer, Mapping) else _Attributes(answer)
    text = next((fields.get(one) for one in _TEXTS if isinstance(fields.get(one), str)), None)
    if isinstance(text, str):
        return Said(text, cited=_places(name, fields.get("citations")))
    raise CallFailedError(f"{name}: expected a text; got {type(answer).__qualname__}", again=False)


_TEXTS = ("content", "text", "answer")  # what an object or mapping calls its text


class _Attributes:
    """An object's attributes, read as a mapping is."""

    def __init__(self, held: object) -> None:
        self._held = held

    def get(self, name: str) -> object:
        """Return an attribute, None for one that is not there."""
        return getattr(self._held, name, None)


def _places(name: str, told: object) -> tuple[int, ...] | None:
    """Return the places of passages that a generator says it cites; None where it says nothing of them."""
    if told is None:
        return None
    if isinstance(told, Sequence) and not isinstance(told, str | bytes):
        places = [place for place in told if isinstance(place, int) and not isinstance(place, bool)]
        if len(places) == len(told):
            return tuple(places)
    raise CallFailedError(
        f"{name}: expected `citations` as places of passages, counted from 1; got {told!r:.100}", again=False
    )


def _ruled(name: str, ruling: object) -> Verdict:
    if isinstance(ruling, Mapping):
        ruling = (ruling.get("correct"), ruling.get("reason", ""))
    right, reason = ruling if isinstance(ruling, tuple) and len(ruling) == 2 else (ruling, "")
    if isinstance(right, bool):
        return Verdict(right, str(reason)[:2000])
    raise CallFailedError(
        f"{name}: expected true or false, with a reason or without; got {ruling!r:.100}", again=False
    )
