"""What README and docs show is run as it stands, from top to bottom, in a scratch home.

A `python` block that starts with `# NAME.py` is written to that file; it is run by the shell block that names
it, else at once. A `yaml` block likewise. Lines of a `sh` block are run, `# exit N` says with which code they
end. A `text` block after it shows lines of its output. A block without a language is only shown.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from resweep.ingest.jsonlines import BadLine, LineReader
from resweep.shipped import invalidation_rules
from resweep.store.lockfile import read_lock

pytestmark = pytest.mark.integration
ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
NAMED = re.compile(r"# (\w+\.\w+)\n")
EXIT = re.compile(r"#\s*exit (\d+)\s*$")
WAIT_S = 60.0


class Block(NamedTuple):
    """A fenced block with a language."""

    page: str
    language: str
    body: str

    @property
    def file(self) -> str | None:
        """The file that it stands for."""
        found = NAMED.match(self.body)
        return found[1] if found else None


def blocks(page: Path, *languages: str) -> Iterator[Block]:
    """Yield a page's blocks in some languages."""
    for language, body in FENCE.findall(page.read_text("utf-8")):
        if language in languages:
            yield Block(page.name, language, body)


class Reader:
    """Follows a page: types its commands into a shell of its own and looks at what comes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / ".local" / "state" / "resweep"
        self.env = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}",
            "HOME": str(folder),
            "RESWEEP_LISTEN": "127.0.0.1:0",
            "RESWEEP_DETECT_SWITCH_QUIET_S": "0",  # a reader has the time that a test has not
        }
        self.background: list[subprocess.Popen[bytes]] = []
        self.output = ""

    def write(self, block: Block) -> None:
        """Write a block's file."""
        body = re.sub(r"sleep\([\d.]+\)", "sleep(0.01)", block.body)
        (self.folder / str(block.file)).write_text(body, "utf-8")

    def run(self, command: str) -> None:
        """Run one line of a shell block."""
        code = int(found[1]) if (found := EXIT.search(command)) else 0
        if command.endswith("&"):
            self.background.append(subprocess.Popen(shlex.split(command[:-1]), env=self.env, cwd=self.folder))
            self.until(lambda: (self.home / "agent.json").exists())
            return
        ended = subprocess.run(
            ["sh", "-c", command],
            env=self.env,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
        )
        self.output += ended.stdout
        assert ended.returncode == code, f"{command}\n{ended.stdout}\n{ended.stderr}"
        if self.background:
            self.until(lambda: not any((self.home / "spool").glob("*.json")))

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition."""
        end = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < end
            time.sleep(0.1)

    def end(self) -> None:
        """End what was started in the background."""
        for process in self.background:
            process.terminate()
            process.wait(WAIT_S)


@contextmanager
def reading(folder: Path) -> Iterator[Reader]:
    """Read a page."""
    reader = Reader(folder)
    try:
        yield reader
    finally:
        reader.end()


def test_the_readme_works_from_top_to_bottom(tmp_path: Path, library: Callable[[str], None]) -> None:
    """Watch, agent, accept, change, alert rules, check, LangChain, no agent, feedback: in this order."""
    library("langchain_core")
    story = list(blocks(ROOT / "README.md", "python", "yaml", "sh", "text"))
    typed = "".join(block.body for block in story if block.language == "sh")
    with reading(tmp_path) as reader:
        for block in story:
            if block.language == "sh":
                reader.output = ""
                for line in block.body.splitlines():
                    reader.run(line)
            elif block.language == "text":
                assert " ".join(block.body.split()) in " ".join(reader.output.split())
            elif block.file:
                reader.write(block)
                if block.language == "python" and block.file not in typed:
                    reader.run(f"python {block.file}")


ELSEWHERE = {"exporters.md"}  # tested beside the exporters: its second example needs a collector


@pytest.mark.parametrize("page", [p for p in PAGES[1:] if p.name not in ELSEWHERE], ids=lambda p: p.name)
def test_python_in_docs_runs(page: Path, tmp_path: Path) -> None:
    """Each page's blocks, one after the other."""
    code = "".join(block.body for block in blocks(page, "python"))
    if not code:
        return
    (tmp_path / "page.py").write_text(code, "utf-8")
    with reading(tmp_path) as reader:
        reader.run("python page.py")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_data_in_docs_can_be_read(page: Path) -> None:
    """JSON (a document, or one a line), TOML and YAML."""
    for block in blocks(page, "json", "toml", "yaml"):
        if block.language == "toml":
            assert tomllib.loads(block.body)
        elif block.language == "yaml":
            assert yaml.safe_load(block.body)
        else:
            assert _json(block.body)


def _json(body: str) -> object:
    try:
        return json.loads(body)
    except ValueError:
        return [json.loads(line) for line in body.splitlines()]


def test_the_lock_file_in_the_docs_is_one(tmp_path: Path) -> None:
    """With every key in its place."""
    (shown,) = (b for b in blocks(ROOT / "docs" / "formats.md", "toml") if "resweep.lock/1" in b.body)
    path = tmp_path / "resweep.lock"
    path.write_text(shown.body, "utf-8")
    (entry,) = read_lock(path).entries
    assert (entry.pipeline, entry.context_k, entry.candidate_k) == ("support-bot", 8, 50)
    assert entry.best_set == (8, 10)
    assert entry.valid_until is not None


def test_the_event_lines_in_the_docs_are_read() -> None:
    """Config, event and feedback, without a field that is not known."""
    (shown, *_) = (b for b in blocks(ROOT / "docs" / "formats.md", "json") if '"type":"event"' in b.body)
    reader = LineReader(invalidation_rules())
    items = list(reader.read(shown.body.encode().splitlines()))
    assert len(items) == 3
    assert not [item for item in items if isinstance(item, BadLine)]
    assert reader.unknown_fields == {}


LINK = re.compile(r"\]\(([^)#\s]*)(#[\w-]+)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    """To a file of the project, and to a heading of it where one is named."""
    for target, heading in LINK.findall(page.read_text("utf-8")):
        if target.startswith(("http://", "https://")):
            continue
        found = (page.parent / target) if target else page
        assert found.exists(), target
        if heading:
            assert heading[1:] in headings(found), f"{target}{heading}"


def headings(page: Path) -> set[str]:
    """Return the anchors that a page's headings have on a forge."""
    found = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-") for title in found}


def test_examples_in_docstrings_hold() -> None:
    """Of every module of both packages, in a process of their own."""
    command = [sys.executable, "-m", "pytest", "--doctest-modules", "-q", "-p", "no:cacheprovider", "-o"]
    command += ["addopts=--import-mode=importlib", "--ignore=agent/resweep/store/migrations"]
    command += ["agent/resweep", "exporters/resweep_exporters"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-1000:]
    assert " passed" in ended.stdout
