"""Documents that people keep: read within bounds, and refused where a slip would pass for a meaning."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from resweep import documents
from resweep.domain.errors import InputError


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", '{"k": 1, "k": 2}'),
        ("a.json", '{"deep": {"k": 1, "k": 1}}'),
        ("a.yaml", "k: 1\nother: 2\nk: 3\n"),
        ("a.yaml", "deep:\n  - {k: 1, k: 2}\n"),
        ("a.toml", "k = 1\nk = 2\n"),
    ],
)
def test_a_key_that_stands_twice_is_refused_in_every_format(tmp_path: Path, name: str, text: str) -> None:
    """What a merge leaves behind must not be read as one of its sides."""
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError, match=name):
        documents.read(path)


def test_what_yaml_merges_in_gives_way_to_the_mappings_own_keys(tmp_path: Path) -> None:
    """Anchors and merges are no slip."""
    path = tmp_path / "a.yaml"
    path.write_text("base: &b {k: 1, m: 1}\none: {<<: *b, k: 2}\ntwo: {<<: *b}\n")
    assert documents.read(path) == {
        "base": {"k": 1, "m": 1},
        "one": {"k": 2, "m": 1},
        "two": {"k": 1, "m": 1},
    }


@pytest.mark.parametrize("name", ["a.json", "a.yaml", "a.toml"])
def test_a_mark_of_byte_order_is_no_part_of_the_document(tmp_path: Path, name: str) -> None:
    """Some editors write one."""
    path = tmp_path / name
    text = {"a.json": '{"k": 1}', "a.yaml": "k: 1", "a.toml": "k = 1"}[name]
    path.write_text(text, "utf-8-sig")
    assert documents.read(path) == {"k": 1}


def test_an_endless_file_is_refused() -> None:
    """After as many bytes as a document may have."""
    with pytest.raises(InputError, match="/dev/zero: at most 4000000 bytes were expected"):
        documents.read(Path("/dev/zero"))


def test_a_link_to_itself_a_folder_and_an_impossible_name_are_refused(tmp_path: Path) -> None:
    """With what the system says."""
    (tmp_path / "loop").symlink_to("loop")
    for path, why in ((tmp_path / "loop", "symbolic links"), (tmp_path, "directory"), (Path("a\0b"), "null")):
        with pytest.raises(InputError, match=why):
            documents.read(path)


def test_a_pipe_is_read(tmp_path: Path) -> None:
    """As a shell's `<(…)` hands one over."""
    reading, writing = os.pipe()
    os.write(writing, b"k: 1")
    os.close(writing)
    assert documents.read(Path(f"/dev/fd/{reading}")) == {"k": 1}
    os.close(reading)
