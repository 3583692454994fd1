"""Ragas' own question about a passage, asked through our endpoint: the one door to that library.

Metric and prompt are Ragas'; calls, retries, waits, budget and what is kept are those of a sweep.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable
from typing import Any

import msgspec

from resweep.domain.errors import UsageError
from resweep.serve.models import ChatModel, Named, chat_model, objects_in
from resweep.sweep.answers import TOKEN_CHARACTERS, AnswerCost, Said
from resweep.sweep.calls import CallFailedError
from resweep.sweep.usefulness import ToWeigh, Usefulness, Weighing

METRICS = ("context_precision",)
INSTALL = "install it with `pip install 'resweep[ragas]'`"


def weighing(
    metric: str, named: Named, timeout_s: float, tell: Callable[[AnswerCost], None] | None = None
) -> Weighing:
    """Return how passages are weighed by a metric of Ragas, with the judge behind an endpoint.

    Raises UsageError for a metric that is not known, a judge that is no endpoint, and without Ragas.
    """
    if metric not in METRICS:
        raise UsageError(f"expected --ragas among {', '.join(METRICS)}; got {metric!r}")
    if not named.remote:
        raise UsageError(
            f"expected an endpoint as --judge with --ragas, https://host/v1#model; got {named.target}: Ragas "
            "asks a question of its own, which a function (question, answer, reference) does not answer"
        )
    made = _metric()
    bare = _question(made, ToWeigh("", "", ""))
    digest = hashlib.sha256(bare.encode()).hexdigest()[:12]
    chat = chat_model(named, "RESWEEP_JUDGE_KEY", timeout_s)
    return Weighing(
        judge=lambda asked: _weigh(made, chat, asked),
        model=named.known(),
        # The question itself, not the version of the library: verdicts outlive a release that leaves it be.
        rubric=f"ragas context_precision_with_reference {digest}",
        prompt_tokens=len(bare) // TOKEN_CHARACTERS,
        tell=tell,
    )


def _metric() -> Callable[[Any], Any]:
    """Return what makes the metric around a model."""
    os.environ.setdefault("RAGAS_DO_NOT_TRACK", "true")  # what is swept stays here
    try:
        from ragas.llms.base import InstructorBaseRagasLLM
        from ragas.metrics.collections import ContextPrecisionWithReference
    except ImportError as error:
        raise UsageError(f"--ragas needs Ragas ({error}): {INSTALL}") from None

    class Through(InstructorBaseRagasLLM):  # type: ignore[misc]
        """A model that Ragas asks: it hands the question on, and reads the answer as Ragas wants it."""

        def __init__(self, answer: Callable[[str], str]) -> None:
            self._answer = answer

        def generate(self, prompt: str, response_model: Any) -> Any:
            """Return the answer to a prompt as the structure that the metric asks for."""
            return response_model.model_validate_json(self._answer(prompt))

        async def agenerate(self, prompt: str, response_model: Any) -> Any:
            """Do what `generate` does: every call has a thread of its own already."""
            return self.generate(prompt, response_model)

    return lambda answer: ContextPrecisionWithReference(llm=Through(answer))


def _question(made: Callable[[Any], Any], asked: ToWeigh) -> str:
    """Return the text that Ragas asks a model."""
    seen: list[str] = []

    def answer(prompt: str) -> str:
        seen.append(prompt)
        return '{"reason": "", "verdict": 0}'

    _score(made(answer), ToWeigh(*(text or " " for text in asked)))  # Ragas refuses an empty text
    return seen[0]


def _score(metric: Any, asked: ToWeigh) -> float:
    scored = metric.ascore(
        user_input=asked.question, reference=asked.reference, retrieved_contexts=[asked.passage]
    )
    return float(asyncio.run(scored).value)


def _weigh(made: Callable[[Any], Any], chat: ChatModel, asked: ToWeigh) -> Usefulness:
    """Return the verdict on one passage. Raises CallFailedError where the judge gave none."""
    heard: list[tuple[Said, bool, str]] = []

    def answer(prompt: str) -> str:
        said = chat.ask([{"role": "user", "content": prompt}])
        verdict, reason = _verdict(said)
        heard.append((said, verdict, reason))
        return msgspec.json.encode({"reason": reason, "verdict": int(verdict)}).decode()

    _score(made(answer), asked)
    said, useful, reason = heard[0]
    return Usefulness(useful, reason[:2000], said.prompt_tokens, said.completion_tokens)


def _verdict(said: Said) -> tuple[bool, str]:
    """Return the one verdict in what a judge said, and its reason."""
    told = [one for one in objects_in(said.text) if one.get("verdict") in (0, 1, "0", "1")]
    verdicts = {int(one["verdict"]) for one in told}
    if len(verdicts) == 1:
        return bool(verdicts.pop()), str(told[-1].get("reason", ""))
    raise CallFailedError(
        f'expected one {{"reason", "verdict": 0 or 1}} from the judge; got {said.text[:200]!r}',
        taken=(said.prompt_tokens, said.completion_tokens),
    )
