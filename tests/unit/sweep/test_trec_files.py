"""TREC runs, qrels and BEIR folders, as they come."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from resweep.domain.errors import InputError
from resweep.sweep.trec import read_beir, read_qrels, read_run


def _file(folder: Path, text: str, name: str = "file") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_the_rank_column_orders_then_the_file(tmp_path: Path) -> None:
    """Rank 0 before 1 before 1: scores, which say the reverse, never reorder."""
    path = _file(tmp_path, "q Q0 b 1 0.1 t\nq Q0 c 1 0.9 t\nq Q0 a 0 0.0 t\n")
    run = read_run(path)
    assert run["q"].ids == ["a", "b", "c"]
    assert run["q"].scores == [0.0, 0.1, 0.9]


def test_ranks_are_numbers_not_text(tmp_path: Path) -> None:
    """Rank 10 comes after rank 9."""
    path = _file(tmp_path, "q Q0 tenth 10 1 t\nq Q0 ninth 9 1 t\n")
    assert read_run(path)["q"].ids == ["ninth", "tenth"]


def test_equal_ranks_keep_the_order_of_the_file(tmp_path: Path) -> None:
    """A tool that writes 0 everywhere is read by line."""
    path = _file(tmp_path, "".join(f"q Q0 d{i} 0 {i} t\n" for i in range(5)))
    assert read_run(path)["q"].ids == [f"d{i}" for i in range(5)]


def test_a_repeated_passage_keeps_its_place(tmp_path: Path) -> None:
    """The reader drops nothing: the measures count it once."""
    assert read_run(_file(tmp_path, "q Q0 a 1 1 t\nq Q0 a 2 1 t\n"))["q"].ids == ["a", "a"]


def test_a_score_that_is_no_number_is_no_score(tmp_path: Path) -> None:
    """NaN and words give None, and the passage stays."""
    assert read_run(_file(tmp_path, "q Q0 a 1 nan t\nq Q0 b 2 x t\n"))["q"].scores == [None, None]


def test_gzip_and_a_byte_order_mark(tmp_path: Path) -> None:
    """Compressed files are told by their first bytes, and a BOM is no part of the query."""
    path = tmp_path / "run.gz"
    path.write_bytes(gzip.compress("\ufeffq Q0 a 1 1 t\n".encode()))
    assert list(read_run(path)) == ["q"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("q Q0 a\n", "line 1: expected `query Q0 passage rank score tag`, got 3 columns"),
        ("q Q0 a 1 1 t\n\nq Q0 b first 1 t\n", "line 3: expected a rank, a number, got 'first'"),
    ],
)
def test_a_bad_run_line_is_named(text: str, says: str, tmp_path: Path) -> None:
    """File, line, what was expected and what came."""
    with pytest.raises(InputError, match=says):
        read_run(_file(tmp_path, text))


def test_trec_qrels_and_spans_of_one_passage(tmp_path: Path) -> None:
    """A pair that comes twice keeps its higher grade."""
    path = _file(tmp_path, "q1 0 d1 1\nq1 0 d1 3\nq1 0 d2 0\nq2\t0\td3\t-1\n")
    assert read_qrels(path) == {"q1": {"d1": 3.0, "d2": 0.0}, "q2": {"d3": -1.0}}


def test_a_beir_table_has_a_heading(tmp_path: Path) -> None:
    """Tabs, a heading, ids with spaces."""
    path = _file(tmp_path, "query-id\tcorpus-id\tscore\nq 1\tdoc 1\t1\n")
    assert read_qrels(path) == {"q 1": {"doc 1": 1.0}}


def test_json_line_qrels(tmp_path: Path) -> None:
    """One object a line, by the usual names."""
    path = _file(tmp_path, '{"query_id": "q", "doc_id": "d", "grade": 2}\n')
    assert read_qrels(path) == {"q": {"d": 2.0}}


def test_a_bad_grade_is_named(tmp_path: Path) -> None:
    """The line and the word that is no grade."""
    with pytest.raises(InputError, match="line 2: expected a grade, a number, got 'yes'"):
        read_qrels(_file(tmp_path, "q 0 d 1\nq 0 e yes\n"))


def test_a_beir_folder_gives_cases_with_their_queries(tmp_path: Path) -> None:
    """Queries of the split alone are cases."""
    (tmp_path / "qrels").mkdir()
    _file(tmp_path / "qrels", "query-id\tcorpus-id\tscore\nq1\td1\t1\n", "test.tsv")
    _file(tmp_path, '{"_id": "q1", "text": "how long"}\n{"_id": "q2", "text": "no"}\n', "queries.jsonl")
    (case,) = read_beir(tmp_path)
    assert (case.case_id, case.query, case.judgments) == ("q1", "how long", {"d1": 1.0})


def test_a_beir_folder_without_the_split_says_what_there_is(tmp_path: Path) -> None:
    """`dev` is there, `test` is not."""
    (tmp_path / "qrels").mkdir()
    _file(tmp_path / "qrels", "q\td\t1\n", "dev.tsv")
    with pytest.raises(InputError, match="got dev; name the split"):
        read_beir(tmp_path)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    """The path, and why."""
    with pytest.raises(InputError, match="No such file"):
        read_run(tmp_path / "none")


def test_a_broken_gzip_is_told(tmp_path: Path) -> None:
    """A file cut off in the middle is no shorter run."""
    path = tmp_path / "run.gz"
    whole = gzip.compress("".join(f"q Q0 d{i * i} {i} 1 t\n" for i in range(2000)).encode())
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="breaks off"):
        read_run(path)


def test_a_file_that_is_not_text_is_told(tmp_path: Path) -> None:
    """Latin-1 bytes are not guessed at."""
    path = tmp_path / "latin"
    path.write_bytes("q Q0 caf\xe9 1 1 t\n".encode("latin-1"))
    with pytest.raises(InputError, match="expected UTF-8"):
        read_run(path)
