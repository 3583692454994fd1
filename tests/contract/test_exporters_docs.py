"""docs/exporters.md: its example runs, and its figures are those of the code."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from resweep_exporters import otlp

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "exporters.md").read_text(encoding="utf-8")


def test_the_prometheus_example_prints_its_counter(capsys: pytest.CaptureFixture[str]) -> None:
    """The first example is a whole program."""
    exec(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0], {})
    expected = 'resweep_retrievals_total{config="9f2c0a417be1",pipeline="support-bot"} 3.0'
    assert expected in capsys.readouterr().out


def test_the_exit_times_are_those_of_the_code() -> None:
    """The last export and the whole of the exit."""
    longest = inspect.signature(otlp.OtlpExporter.stop).parameters["timeout"].default
    assert f"{otlp.FLUSH:g} s where it answers late, at\n  most {longest:g} s in all" in PAGE
