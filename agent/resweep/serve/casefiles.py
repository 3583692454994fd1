"""Files of the labelled set, in and out: which format, read by whom, written where."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from resweep.domain.case import CaseLine, Judgment
from resweep.domain.errors import InputError, UsageError
from resweep.domain.event import Hit
from resweep.label.formats import BadRow, ReadCases, beir, caselines, ragas, table, trec
from resweep.sweep.textfile import lines, open_text
from resweep.sweep.trec import read_qrels

FORMATS = ("jsonl", "csv", "trec", "beir", "ragas")
ONE_FILE = ("jsonl", "csv", "trec", "run", "ragas")
BEIR_SPLIT = "test"


class CaseWithList(NamedTuple):
    """A case and the list that it is judged on."""

    case: CaseLine
    hits: tuple[Hit, ...] = ()


# ---- in


class Given(NamedTuple):
    """What an import is told: the pipeline of cases that name none, who brings them, how to read them."""

    pipeline: str | None = None
    format: str | None = None
    synthetic: bool = False
    link_is_passage: bool = False
    split: str = BEIR_SPLIT


def read(path: Path, given: Given) -> ReadCases:
    """Return the cases of a file or BEIR folder. Raises InputError where it is none of the formats."""
    form = given.format or guessed(path)
    reader = _READERS.get(form)
    if reader is None:
        raise UsageError(f"expected a format in {', '.join(FORMATS)}; got {form!r}")
    found = reader(path, given)
    for case in found.lines:
        case.pipeline = given.pipeline or case.pipeline
        if given.synthetic:
            case.provenance = "synthetic"
    return found


def guessed(path: Path) -> str:
    """Return the format of a file by what is in it."""
    if path.is_dir():
        return "beir"
    if path.suffix.lower() in (".csv", ".tsv"):
        return "csv"
    with open_text(path) as stream:
        try:
            head = next((line for line in stream if line.strip()), "")
        except UnicodeDecodeError:
            return "csv"
    if head.lstrip().startswith("{"):
        return "ragas" if '"user_input"' in head and '"case_id"' not in head else "jsonl"
    return "trec" if len(head.split()) == 4 and "," not in head else "csv"


def _case_lines(path: Path, given: Given) -> ReadCases:
    with _bytes(path) as stream:
        return caselines.read(stream)


def _csv(path: Path, given: Given) -> ReadCases:
    with _bytes(path) as stream:
        return table.read(stream.read(), link_is_passage=given.link_is_passage)


def _trec(path: Path, given: Given) -> ReadCases:
    found = ReadCases()
    found.lines = trec.cases_of(read_qrels(path, _teller(found)))
    return found


def _ragas(path: Path, given: Given) -> ReadCases:
    return ragas.read(line.text for line in lines(path))


def _beir(folder: Path, given: Given) -> ReadCases:
    """Read the judged queries of one split; rows that cannot be used are told with their file."""
    judged = _first(folder, f"qrels/{given.split}.tsv", "qrels.tsv", "qrels.jsonl")
    if judged is None:
        there = sorted(p.stem for p in (folder / "qrels").glob("*.tsv")) if folder.is_dir() else []
        raise InputError(
            f"expected judgments at {folder}/qrels/{given.split}.tsv; got {', '.join(there) or 'none'}: "
            "name one with --split"
        )
    found = ReadCases()
    grades = read_qrels(judged, _teller(found, judged))
    texts = _texts(_first(folder, "queries.jsonl"), set(grades), found)
    for row, case in enumerate(trec.cases_of(grades, texts), 1):
        if case.query is None:
            reason = f"query {case.case_id!r:.80} is judged, and not in queries.jsonl"
            found.bad.append(BadRow(row, f"judged queries: {reason}"))
        elif told := caselines.trouble(case):
            found.bad.append(BadRow(row, f"judged queries, {case.case_id!r:.80}: {told}"))
        else:
            found.lines.append(case)
    _hash(found, _first(folder, "corpus.jsonl"))
    return found


def _teller(found: ReadCases, path: Path | None = None) -> Callable[[int, str], None]:
    """Return what notes a row that cannot be used, with the name of its file where there are several."""
    before = "" if path is None else f"{path.name}: "
    return lambda row, reason: found.bad.append(BadRow(row, before + reason))


def _first(folder: Path, *names: str) -> Path | None:
    """Return the first of some files that is there, packed or not."""
    paths = [folder / f"{name}{packed}" for name in names for packed in ("", ".gz")]
    return next((path for path in paths if path.is_file()), None)


def _texts(path: Path | None, wanted: set[str], told: ReadCases) -> dict[str, str]:
    if path is None:
        return {}
    found = beir.texts_of(lines(path), _teller(told, path))
    return {name: text for name, text in found.items() if name in wanted}


def _hash(found: ReadCases, path: Path | None) -> None:
    """Note the text hash of each judged passage, so that the judgment survives a renumbering."""
    from resweep.domain.values import text_hash

    judged = {one.passage_id for case in found.lines for one in case.judgments}
    texts = _texts(path, judged, found)
    for case in found.lines:
        case.judgments = [
            Judgment(passage_id=one.passage_id, grade=one.grade, text_hash=text_hash(texts[one.passage_id]))
            if texts.get(one.passage_id)
            else one
            for one in case.judgments
        ]


_READERS: dict[str, Callable[[Path, Given], ReadCases]] = {
    "jsonl": _case_lines,
    "csv": _csv,
    "trec": _trec,
    "beir": _beir,
    "ragas": _ragas,
}


def _bytes(path: Path) -> Any:
    try:
        with path.open("rb") as probe:
            zipped = probe.read(2) == b"\x1f\x8b"
        return gzip.open(path) if zipped else path.open("rb")
    except OSError as error:
        raise InputError(f"expected a readable file at {path}: {error.strerror or error}") from None


# ---- out


def text(form: str, cases: Iterable[CaseWithList]) -> Iterator[str]:
    """Yield the parts of a file of one of the formats that are one file (`trec`: the qrels)."""
    if form == "jsonl":
        yield from caselines.write(case for case, _ in cases)
    elif form == "csv":
        yield from table.write(case for case, _ in cases)
    elif form == "trec":
        yield from trec.qrels(case for case, _ in cases)
    elif form == "run":
        yield from trec.run(trec.Listed(case.case_id, hits) for case, hits in cases)
    elif form == "ragas":
        yield from ragas.samples(cases)
    else:
        raise UsageError(f"expected a format in {', '.join((*FORMATS, 'run'))}; got {form!r}")


def checked_text(form: str, cases: Iterable[CaseWithList]) -> Iterator[str]:
    """Return what `text` yields; raises UsageError at once for a format that is none or is a folder."""
    if form not in ONE_FILE:
        raise UsageError(f"expected a format in {', '.join(ONE_FILE)}; got {form!r:.40}")
    return text(form, cases)


def write(form: str, cases: Iterable[CaseWithList], target: Path) -> list[Path]:
    """Write a set to a file, or to a folder for `beir`; for `trec` the run goes beside the qrels."""
    if form == "beir":
        return _write_beir(list(cases), target)
    if form == "trec":
        every = list(cases)
        run = target.with_suffix(".run")
        return [_write(target, text("trec", every)), _write(run, text("run", every))]
    return [_write(target, text(form, cases))]


def _write_beir(every: list[CaseWithList], folder: Path) -> list[Path]:
    cases = [case for case, _ in every]
    texts = {hit.id: hit.text or "" for _, hits in every for hit in hits}
    files = {
        "queries.jsonl": beir.queries(cases),
        "corpus.jsonl": beir.corpus(texts, cases),
        **{f"qrels/{split}.tsv": beir.qrels(cases, split) for split in beir.SPLITS},
    }
    return [_write(folder / name, parts) for name, parts in files.items()]


def _write(path: Path, parts: Iterable[str]) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as raw, _packer(path, raw) as stream:
            for part in parts:
                stream.write(part.encode("utf-8", "surrogatepass"))
    except OSError as error:
        raise UsageError(f"expected to write {path}; {error.strerror or error}") from None
    return path


def _packer(path: Path, raw: Any) -> Any:
    if path.suffix == ".gz":
        return gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0)
    return io.BufferedWriter(raw) if isinstance(raw, io.RawIOBase) else raw


def to_wire(one: CaseWithList) -> dict[str, object]:
    """Return a case and its list as plain data."""
    return {"case": msgspec.to_builtins(one.case), "hits": msgspec.to_builtins(one.hits)}


def from_wire(raw: object) -> CaseWithList:
    """Return a case and its list from plain data."""
    assert isinstance(raw, dict)
    return CaseWithList(
        msgspec.convert(raw["case"], CaseLine), msgspec.convert(raw["hits"], tuple[Hit, ...], strict=False)
    )
