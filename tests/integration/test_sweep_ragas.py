"""Ragas' own metric on the same verdicts, and its own question through our endpoint."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PYTHON = Path(__file__).resolve().parents[2] / ".venvs" / "ragas" / "bin" / "python"
NEEDED = ".venvs/ragas: run .ci/adapter_venvs ragas"

EQUAL = """
import asyncio, itertools, json
from ragas.llms.base import InstructorBaseRagasLLM
from ragas.metrics.collections import ContextPrecisionWithReference
from ragas.metrics import LLMContextPrecisionWithReference
from resweep.sweep.usefulness import context_precision

class Scripted(InstructorBaseRagasLLM):
    def __init__(self, verdicts):
        self.verdicts = list(verdicts)
    def generate(self, prompt, response_model):
        return response_model(reason="", verdict=self.verdicts.pop(0))
    async def agenerate(self, prompt, response_model):
        return self.generate(prompt, response_model)

def of_ragas(verdicts):
    metric = ContextPrecisionWithReference(llm=Scripted(verdicts))
    texts = ["t"] * len(verdicts)
    return asyncio.run(metric.ascore(user_input="q", reference="r", retrieved_contexts=texts)).value

every = [v for n in range(1, 9) for v in itertools.product((0, 1), repeat=n)]
print(json.dumps([len(every), [v for v in every if of_ragas(v) != context_precision([bool(x) for x in v])]]))
"""

THROUGH = """
import json, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from resweep.serve import models, ragas_metrics
from resweep.sweep.calls import CallFailedError
from resweep.sweep.usefulness import ToWeigh
from ragas.metrics.collections.context_precision.util import ContextPrecisionInput, ContextPrecisionPrompt

bodies, answers = [], [
    '```json\\n{"reason": "it says so", "verdict": 1}\\n```', '{"reason": "no", "verdict": 0}', "perhaps",
]
class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        bodies.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        told = {"choices": [{"message": {"content": answers[len(bodies) - 1]}}],
                "usage": {"prompt_tokens": 700, "completion_tokens": 9}}
        data = json.dumps(told).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
    def log_message(self, *args): pass

server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
named = models.parse_model(f"http://127.0.0.1:{server.server_port}/v1#j", "2")
weighing = ragas_metrics.weighing("context_precision", named, 5.0)
asked = ToWeigh("what é?", "so", "it is so")
first, second = weighing.judge(asked), weighing.judge(asked)
try:
    weighing.judge(asked)
except CallFailedError as error:
    failed = [error.again, error.taken]
inside = ContextPrecisionInput(question="what é?", context="it is so", answer="so")
own = ContextPrecisionPrompt().to_string(inside)
print(json.dumps({
    "same": [body["messages"] for body in bodies] == [[{"role": "user", "content": own}]] * 3,
    "first": [first.useful, first.reason, first.prompt_tokens, first.completion_tokens],
    "second": second.useful, "failed": failed, "rubric": weighing.rubric,
    "again": ragas_metrics.weighing("context_precision", named, 5.0).rubric == weighing.rubric,
    "tokens": weighing.prompt_tokens,
}))
server.shutdown()
"""


def told(code: str, folder: Path) -> Any:
    done = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.integration
def test_the_value_equals_what_ragas_makes_of_the_same_verdicts(
    tmp_path: Path, require: Callable[[bool, str], None]
) -> None:
    """All 510 lists of up to eight verdicts, to the last bit."""
    require(PYTHON.exists(), NEEDED)
    assert told(EQUAL, tmp_path) == [510, []]


@pytest.mark.integration
def test_a_passage_is_weighed_by_the_question_that_ragas_asks(
    tmp_path: Path, require: Callable[[bool, str], None]
) -> None:
    """Its prompt word for word, one call for a passage; what is no verdict may be asked for again."""
    require(PYTHON.exists(), NEEDED)
    found = told(THROUGH, tmp_path)
    assert found["same"] is True
    assert found["first"] == [True, "it says so", 700, 9]
    assert (found["second"], found["failed"], found["again"]) == (False, [True, [700, 9]], True)
    assert found["rubric"].startswith("ragas context_precision_with_reference ")
    assert found["tokens"] > 500
