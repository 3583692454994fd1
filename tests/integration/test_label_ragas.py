"""Ragas itself reads the dataset that resweep writes, in an environment of its own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from resweep.domain.case import CaseLine, Judgment
from resweep.domain.event import Hit
from resweep.label.formats import ragas

PYTHON = Path(__file__).resolve().parents[2] / ".venvs" / "ragas" / "bin" / "python"
READ = """
import json, sys
from ragas import EvaluationDataset
found = EvaluationDataset.from_jsonl(sys.argv[1])
found.to_jsonl(sys.argv[2])
print(json.dumps([[s.user_input, s.retrieved_context_ids, s.reference_contexts, s.reference] for s in found]))
"""


@pytest.mark.integration
def test_ragas_reads_what_resweep_writes_and_writes_what_resweep_reads(
    tmp_path: Path, require: Callable[[bool, str], None]
) -> None:
    """Question, contexts with their ids, reference; and back through Ragas' own file."""
    require(PYTHON.exists(), ".venvs/ragas: run .ci/adapter_venvs ragas")
    case = CaseLine(
        case_id="c1",
        query="how é?",
        reference_answer="so",
        judgments=[Judgment(passage_id="b", grade=1), Judgment(passage_id="a", grade=0)],
    )
    out, back = tmp_path / "out.jsonl", tmp_path / "back.jsonl"
    out.write_text("".join(ragas.samples([(case, (Hit("a", text="A"), Hit("b", text="B")))])), "utf-8")
    command: list[str | Path] = [PYTHON, "-c", READ, out, back]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [["how é?", ["a", "b"], ["B"], "so"]]
    (read,) = ragas.read(back.read_text("utf-8").splitlines()).lines
    assert (read.query, read.reference_answer) == (case.query, case.reference_answer)
    assert [j.passage_id for j in read.judgments] == ["b"]
