"""Formats: out and in again without loss, read by other people's tools, bad rows told one by one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from resweep.domain.case import CaseLine, Draw, Judgment
from resweep.domain.errors import InputError
from resweep.domain.event import Hit
from resweep.label.formats import beir, caselines, ragas, table, trec
from resweep.serve import casefiles
from resweep.sweep.caselines import read_cases
from resweep.sweep.trec import read_beir, read_qrels, read_run


def case(number: int = 1, **changes: object) -> CaseLine:
    """Give a labelled case with everything on it."""
    values: dict[str, object] = {
        "case_id": f"c{number}",
        "query": f'how, "{number}"\nthen é?',
        "pipeline": "bot",
        "stratum": "uniform",
        "inclusion_probability": 0.1,
        "weight": 12.5,
        "plan": "p1",
        "state": "labelled",
        "split": "tune",
        "judgments": [
            Judgment(passage_id="a b", grade=1.0, text_hash="ta"),
            Judgment(passage_id="c", grade=0.0),
        ],
        "required": [["a b", "d"], ["c"]],
        "answerable": True,
        "reference_answer": "=SUM(A1)",
        "notes": "-",
        "slices": {"lang": "en"},
        "provenance": "live",
        "event_id": "e1",
        "config": "c" * 12,
        "corpus_revision": "r1",
        "cluster": "k1",
        "seen": 3,
        "first_ts": 1.5,
        "last_ts": 2.25,
        "links": ["https://a/b", "c.md"],
        "events": [Draw(event_id="e1", ts=1.5, p=0.1, plan="p1", stratum="uniform", strata=("uniform",))],
    }
    return CaseLine(**(values | changes))  # type: ignore[arg-type]


HITS = (Hit("c", 0.9, text="gamma"), Hit("a b", 0.7, text="alpha"), Hit("c", 0.6, text="gamma"))


def test_case_lines_come_back_as_they_went() -> None:
    """Every field, through JSON."""
    found = caselines.read(caselines.write([case(1), case(2)]))
    assert (found.lines, found.bad) == ([case(1), case(2)], [])


def test_csv_comes_back_as_it_went() -> None:
    """Line breaks, quotes, letters and what a spreadsheet would run included."""
    text = "".join(table.write([case(1), case(2, query="=1+1", answerable=None)]))
    assert "'=SUM(A1)" in text
    found = table.read(text.encode())
    assert (found.lines, found.bad) == ([case(1), case(2, query="=1+1", answerable=None)], [])


def test_the_sweep_reads_case_lines(tmp_path: Path) -> None:
    """What labelling writes is what a sweep takes."""
    path = tmp_path / "set.jsonl"
    path.write_text("".join(caselines.write([case(1)])), "utf-8")
    read = read_cases(path)
    (one,) = read.cases
    assert (one.judgments, one.weight, one.split) == ({"a b": 1.0, "c": 0.0}, 12.5, "tune")
    assert read.left_out == []


TEAM = """Question;Answer;Link
How do I get a refund?;Within 30 days;https://help/refunds
;nobody asked;https://help/x
"Where is
my parcel";See tracking;
how do i get a REFUND;again;https://help/refunds
"""


def test_a_support_teams_csv_is_read_and_every_bad_row_told() -> None:
    """Semicolons, line breaks in a cell; an empty question and a repeated one are reported by row."""
    found = table.read(TEAM.encode())
    assert [c.query for c in found.lines] == ["How do I get a refund?", "Where is\nmy parcel"]
    assert found.lines[0].links == ["https://help/refunds"]
    assert found.lines[0].reference_answer == "Within 30 days"
    assert found.lines[0].judgments == []
    assert [(b.row, b.reason) for b in found.bad] == [
        (3, "expected a question; the cell is empty"),
        (6, "asks the same question as row 2"),
    ]


def test_a_link_can_be_the_passage() -> None:
    """Where passages are named by it."""
    found = table.read(TEAM.encode(), link_is_passage=True)
    assert [j.passage_id for j in found.lines[0].judgments] == ["https://help/refunds"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_what_spreadsheets_write_is_read(encoding: str) -> None:
    """Whatever they call CSV."""
    found = table.read("question,answer\nwie groß,fünf\n".encode(encoding))
    assert [(c.query, c.reference_answer) for c in found.lines] == [("wie groß", "fünf")]


def test_a_csv_without_questions_is_refused() -> None:
    """With what was looked for and what there is."""
    with pytest.raises(InputError, match=r"column of questions .*got name, mail"):
        table.read(b"name,mail\na,b\n")
    with pytest.raises(InputError, match="an empty file"):
        table.read(b"")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"case_id": "a", "state": "done"}', "expected a state in"),
        ('{"case_id": "a", "split": "dev"}', "expected a split in"),
        ('{"case_id": "a", "weight": -1}', "expected a weight from 0"),
        ('{"case_id": "a", "inclusion_probability": 2}', r"in \(0, 1\]"),
        ('{"case_id": "a", "judgments": [{"passage_id": "", "grade": 1}]}', "passage_id of 1 to 400"),
        ('{"case_id": "a", "judgments": [{"passage_id": "x", "grade": -1}]}', "grade from 0"),
        ('{"query": 5', "expected a resweep.case/1 object"),
        ('{"case_id": ""}', "expected a case_id or a query"),
        ('{"case_id": "a", "query": " "}', "expected a query; got spaces"),
        (r'{"case_id": "a", "query": "x\u0000y"}', "got a NUL byte"),
    ],
)
def test_a_line_that_is_no_case_is_told(line: str, reason: str) -> None:
    """With its row and what was expected."""
    found = caselines.read(["", line])
    assert found.lines == []
    assert found.bad[0].row == 2
    assert re.search(reason, found.bad[0].reason)


def test_a_repeated_case_id_is_told() -> None:
    """The first stays."""
    found = caselines.read(['{"case_id": "a", "query": "x"}', '{"case_id": "a", "query": "y"}'])
    assert [c.query for c in found.lines] == ["x"]
    assert found.bad[0].reason == "case_id 'a' is that of row 1 too"


def test_trec_files_come_back_as_they_went(tmp_path: Path) -> None:
    """Grades and ranks; ids with blanks are encoded, a duplicate counts once."""
    run, qrels = tmp_path / "set.run", tmp_path / "set.qrels"
    run.write_text("".join(trec.run([trec.Listed("c1", HITS)])))
    qrels.write_text("".join(trec.qrels([case(1)])))
    assert read_run(run)["c1"].ids == ["c", "a%20b"]
    assert read_qrels(qrels) == {"c1": {"a%20b": 1.0, "c": 0.0}}
    (back,) = trec.cases_of(read_qrels(qrels), {"c1": "how"})
    assert {j.passage_id: j.grade for j in back.judgments} == {"a%20b": 1.0, "c": 0.0}


def test_ir_measures_reads_the_trec_files(tmp_path: Path) -> None:
    """And finds what resweep finds: recall 0 at 1, 1 at 2."""
    ir_measures = pytest.importorskip("ir_measures")
    run, qrels = tmp_path / "set.run", tmp_path / "set.qrels"
    run.write_text("".join(trec.run([trec.Listed("c1", HITS)])))
    qrels.write_text("".join(trec.qrels([case(1)])))
    measures = [ir_measures.R @ 1, ir_measures.R @ 2]
    found = ir_measures.calc_aggregate(
        measures,
        list(ir_measures.read_trec_qrels(str(qrels))),
        list(ir_measures.read_trec_run(str(run))),
    )
    assert [found[m] for m in measures] == [0.0, 1.0]


def write_beir(folder: Path, cases: list[CaseLine]) -> None:
    """Write a BEIR folder."""
    (folder / "qrels").mkdir()
    (folder / "queries.jsonl").write_text("".join(beir.queries(cases)), "utf-8")
    (folder / "corpus.jsonl").write_text("".join(beir.corpus({"a b": "alpha"}, cases)), "utf-8")
    for split in beir.SPLITS:
        (folder / "qrels" / f"{split}.tsv").write_text("".join(beir.qrels(cases, split)), "utf-8")


def test_a_beir_folder_comes_back_as_it_went(tmp_path: Path) -> None:
    """Texts, grades and splits; ids keep their blanks."""
    write_beir(tmp_path, [case(1), case(2, split="holdout")])
    assert [(c.case_id, c.query, c.judgments) for c in read_beir(tmp_path)] == [
        (f"c{i}", case(i).query, {"a b": 1.0, "c": 0.0}) for i in (1, 2)
    ]
    assert [c.case_id for c in read_beir(tmp_path, "holdout")] == ["c2"]
    corpus = (tmp_path / "corpus.jsonl").read_text("utf-8").splitlines()
    told: list[tuple[int, str]] = []
    texts = beir.texts_of(enumerate(corpus, 1), lambda row, why: told.append((row, why)))
    assert (texts, told) == ({"a b": "alpha", "c": ""}, [])


def test_a_beir_folder_is_read_and_every_bad_row_told(tmp_path: Path) -> None:
    """Each with its file; the rest is taken."""
    (tmp_path / "qrels").mkdir()
    rows = "query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\tbad\nq2\td1\t1\nqX\td1\t1\nq1 d3\n"
    (tmp_path / "qrels" / "test.tsv").write_text(rows)
    queries = '{"_id": "q1", "text": "how"}\nno json\n{"_id": "q2", "text": 5}\n{"text": "nobody"}\n'
    (tmp_path / "queries.jsonl").write_text(queries)
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d1", "title": "", "text": "alpha"}\n[]\n')
    found = casefiles.read(tmp_path, casefiles.Given(pipeline="bot"))
    assert [(c.case_id, c.pipeline, len(c.judgments)) for c in found.lines] == [("q1", "bot", 1)]
    assert found.lines[0].judgments[0].text_hash is not None
    assert [(b.row, b.reason) for b in found.bad] == [
        (3, "test.tsv: expected a grade, a number, got 'bad'"),
        (6, "test.tsv: expected `query 0 passage grade`, got 2 columns"),
        (2, 'queries.jsonl: expected {"_id", "text"}, got no json'),
        (3, "queries.jsonl: expected a text of 'q2', got 5"),
        (4, 'queries.jsonl: expected {"_id", "text"}, got {"text": "nobody"}'),
        (2, "judged queries: query 'q2' is judged, and not in queries.jsonl"),
        (3, "judged queries: query 'qX' is judged, and not in queries.jsonl"),
        (2, 'corpus.jsonl: expected {"_id", "text"}, got []'),
    ]


def test_qrels_are_read_and_every_bad_row_told(tmp_path: Path) -> None:
    """A sweep refuses such a file; an import takes the rest of it."""
    path = tmp_path / "some.qrels"
    path.write_text('q1 0 d1 1\na line\nq1 0 d2 nan\n{"query_id": "q2"}\nq2 0 d1 0\n')
    found = casefiles.read(path, casefiles.Given())
    assert {c.case_id: len(c.judgments) for c in found.lines} == {"q1": 1, "q2": 1}
    assert [b.row for b in found.bad] == [2, 3, 4]
    with pytest.raises(InputError, match=r"line 2: expected `query 0 passage grade`, got 2 columns; correct"):
        read_qrels(path)


def test_a_row_of_more_cells_than_the_heading_is_told() -> None:
    """A separator that nobody quoted would have cut the question off; blank cells at the end do no harm."""
    found = table.read(b"question,answer\nWhere is it, and how,there\nWho,them,,\n")
    assert [c.query for c in found.lines] == ["Who"]
    assert [b.row for b in found.bad] == [2]


def test_ir_measures_reads_the_qrels_of_a_beir_folder(tmp_path: Path) -> None:
    """Its table is qrels without the column that nobody uses."""
    ir_measures = pytest.importorskip("ir_measures")
    write_beir(tmp_path, [case(1, judgments=[Judgment(passage_id="x", grade=1)])])
    rows = [r.split("\t") for r in (tmp_path / "qrels" / "test.tsv").read_text().splitlines()[1:]]
    qrels = [ir_measures.Qrel(query, passage, int(grade)) for query, passage, grade in rows]
    run = [ir_measures.ScoredDoc("c1", "x", 1.0)]
    assert ir_measures.calc_aggregate([ir_measures.R @ 1], qrels, run)[ir_measures.R @ 1] == 1.0


def test_a_ragas_dataset_comes_back_as_it_went() -> None:
    """Question, reference and what answers; a case that nobody judged is no sample."""
    lines = list(ragas.samples([(case(1), HITS), (case(2, judgments=[]), HITS)]))
    sample = json.loads(lines[0])
    assert sample["retrieved_context_ids"] == ["c", "a b", "c"]
    assert sample["reference_contexts"] == ["alpha"]
    found = ragas.read(lines)
    assert [(c.query, c.reference_answer) for c in found.lines] == [(case(1).query, "=SUM(A1)")]
    assert [j.passage_id for j in found.lines[0].judgments] == ["a b"]


def test_what_is_no_ragas_sample_is_told() -> None:
    """A conversation, and broken JSON."""
    found = ragas.read(['{"user_input": [{"content": "hi"}]}', "{"])
    assert [b.row for b in found.bad] == [1, 2]


def test_a_quote_that_is_never_closed_costs_its_own_row_alone() -> None:
    """The rows after it are read, not swallowed; a cell of several lines stays one."""
    body = 'question,answer\n"two\nlines","a"\nhow,"torn\nwhat,b\nwhere,c\n'
    read = table.read(body.encode())
    assert [case.query for case in read.lines] == ["two\nlines", "what", "where"]
    assert [(bad.row, bad.reason) for bad in read.bad] == [
        (4, "expected the quote that this row opens to be closed")
    ]
