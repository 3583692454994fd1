from __future__ import annotations

from pathlib import Path

from resweep.paths import home, homes, spool_folder


def test_home_variables_come_in_order_of_strength(tmp_path: Path) -> None:
    """RESWEEP_HOME beats XDG_STATE_HOME beats the user's home."""
    environ = {"RESWEEP_HOME": f"{tmp_path}/a", "XDG_STATE_HOME": f"{tmp_path}/b", "HOME": f"{tmp_path}/c"}
    assert [str(p.relative_to(tmp_path)) for p in homes(environ)] == [
        "a",
        "b/resweep",
        "c/.local/state/resweep",
    ]


def test_an_unusable_folder_is_passed_over(tmp_path: Path) -> None:
    """Where the named home is a file, the next one is taken."""
    (tmp_path / "a").write_text("")
    environ = {"RESWEEP_HOME": f"{tmp_path}/a", "HOME": f"{tmp_path}/c"}
    assert spool_folder(environ) == tmp_path / "c/.local/state/resweep/spool"


def test_no_usable_folder_is_none(tmp_path: Path) -> None:
    """Nothing is raised where nothing can be written."""
    (tmp_path / "a").write_text("")
    assert home({"RESWEEP_HOME": f"{tmp_path}/a", "HOME": f"{tmp_path}/a"}) is None


def test_folders_are_private(tmp_path: Path) -> None:
    """What resweep makes is readable by its owner alone."""
    made = spool_folder({"RESWEEP_HOME": f"{tmp_path}/a"})
    assert made is not None
    assert made.stat().st_mode & 0o777 == 0o700
