"""The folder tells the direction: who may import whom, and through which door a library comes in."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = (ROOT / "agent", ROOT / "exporters")
MIDDLE = ("record", "ingest", "store", "detect", "label", "sweep")

# layer -> the layers it may import besides itself and domain
MAY: dict[str, tuple[str, ...]] = {
    "domain": (),
    **dict.fromkeys(MIDDLE, ()),
    "schedule": MIDDLE,
    "serve": (*MIDDLE, "schedule", "exporters"),
}
# modules directly in `resweep`: settings, paths and shipped files, plus the front door itself
OPEN = (
    "resweep",
    "resweep.__main__",
    "resweep.testing",
    "resweep.settings",
    "resweep.paths",
    "resweep.shipped",
    "resweep.documents",
)

# library -> the module prefixes that may import it
DOORS: dict[str, tuple[str, ...]] = {
    "apscheduler": ("resweep.schedule",),
    "sqlalchemy": ("resweep.store",),
    "alembic": ("resweep.store",),
    "psycopg": ("resweep.store",),
    "starlette": ("resweep.serve",),
    "uvicorn": ("resweep.serve",),
    "typer": ("resweep.serve",),
    "click": ("resweep.serve",),
    "rich": ("resweep.serve",),
    "tomlkit": ("resweep.store.lockfile",),
    "yaml": ("resweep.documents",),
    "prometheus_client": ("resweep_exporters.prometheus",),
    "opentelemetry": ("resweep_exporters.otlp", "resweep.record.spans", "resweep.ingest.otlp"),
    "pygal": ("resweep.serve.pages.charts",),
    "itsdangerous": ("resweep.serve.pages.session",),
    "httpx": ("resweep_exporters.webhook", "resweep.serve"),
    "datasketch": ("resweep.label",),
    "sklearn": ("resweep.label", "resweep.serve.demo"),
    "pandas": ("resweep.label", "resweep.sweep", "resweep.store"),
    "jinja2": ("resweep.serve",),
    "langchain_core": ("resweep.record.adapters",),
    "llama_index": ("resweep.record.adapters",),
    "haystack": ("resweep.record.adapters",),
    "ragas": ("resweep.serve.ragas_metrics",),
}
NUMERIC = ("numpy", "scipy", "datasketches")  # arithmetic, wherever numbers are worked on off the request
NEVER_ON_IMPORT = (
    "pandas",
    "sklearn",
    "scipy",
    "numpy",
    "sqlalchemy",
    "starlette",
    "fastapi",
    "opentelemetry",
)


def modules() -> Iterator[tuple[str, Path]]:
    for source in SOURCES:
        for path in sorted(source.rglob("*.py")):
            parts = path.relative_to(source).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def layer(module: str) -> str:
    root, _, rest = module.partition(".")
    return "exporters" if root == "resweep_exporters" else rest.partition(".")[0]


@pytest.mark.parametrize(("module", "path"), [pytest.param(m, p, id=m) for m, p in modules()])
def test_a_module_imports_only_downwards(module: str, path: Path) -> None:
    """domain <- {record, ingest, store, detect, label, sweep} <- schedule <- serve; domain <- exporters."""
    if module in OPEN:
        return
    mine = layer(module)
    allowed = {mine, "domain", *MAY.get(mine, ())}
    back = [
        name
        for name in imports(path)
        if name.split(".")[0] in ("resweep", "resweep_exporters")
        and name not in OPEN
        and layer(name) not in allowed
        and not (mine == "record" and name == "resweep_exporters.prometheus")  # the app's own page, lazily
    ]
    assert back == []


@pytest.mark.parametrize(("module", "path"), [pytest.param(m, p, id=m) for m, p in modules()])
def test_a_library_comes_in_through_its_own_door(module: str, path: Path) -> None:
    """One place knows a library, so that one place changes with it."""
    wrong = [
        name
        for name in imports(path)
        if (doors := DOORS.get(name.split(".")[0])) and not module.startswith(doors)
    ]
    assert wrong == []


def test_the_domain_reads_no_clock_and_does_no_io() -> None:
    """Time, chance and files are arguments."""
    banned = {"random", "threading", "socket", "subprocess", "urllib", "http", "asyncio", "os", "logging"}
    found = {
        module: bad
        for module, path in modules()
        if layer(module) == "domain" and (bad := banned & {name.split(".")[0] for name in imports(path)})
    }
    assert found == {}


def test_importing_resweep_loads_nothing_heavy() -> None:
    """It lives in the user's service: no pandas, no database, no web framework."""
    code = f"import sys, resweep; print([m for m in {NEVER_ON_IMPORT!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_watching_loads_nothing_heavy_either(tmp_path: Path) -> None:
    """Nor does the first wrapped call."""
    code = (
        "import sys, resweep\n"
        "r = resweep.watch(lambda q: [{'id': 'a', 'score': 0.5}], config={'context_k': 1})\n"
        "r('x'); resweep.flush()\n"
        f"print([m for m in {NEVER_ON_IMPORT!r} if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin", "RESWEEP_HOME": str(tmp_path), "PYTHONPATH": ":".join(map(str, SOURCES))},
    )
    assert done.stdout.strip() == "[]"


def test_every_test_says_what_it_shows() -> None:
    """A test is a sentence: its docstring."""
    mute = [
        f"{path.relative_to(ROOT)}:{node.name}"
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and ast.get_docstring(node) is None
    ]
    assert mute == []
