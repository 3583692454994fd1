"""Fingerprints that must never change, whichever process, hash seed or Python works them out."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from resweep.domain.canonical import jcs
from resweep.domain.fingerprint import SCHEME, fingerprint

HERE = Path(__file__).parent
AGENT = HERE.parents[1] / "agent"
SCRIPT = HERE / "fingerprint_elsewhere.py"
VECTORS: list[dict[str, Any]] = json.loads((HERE / "fingerprint_vectors.json").read_text(encoding="utf-8"))


def elsewhere() -> ModuleType:
    """Return the module that other processes import, under the same name."""
    spec = importlib.util.spec_from_file_location("fingerprint_elsewhere", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def here() -> dict[str, Any]:
    """Return what this process works out."""
    found: dict[str, Any] = json.loads(json.dumps(elsewhere().everything()))
    return found


def run(python: str, seed: str) -> dict[str, Any]:
    """Return what a new process of a Python works out under a hash seed."""
    environ = {
        "PYTHONPATH": os.pathsep.join([str(AGENT), str(HERE)]),
        "PYTHONHASHSEED": seed,
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [
        python,
        "-S",
        "-c",
        "import fingerprint_elsewhere as it; it.main()",
    ]  # -S: no installed packages
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True, timeout=60)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def candidates(version: str) -> Iterator[str]:
    """Yield where a Python may be: on the path, or kept by a version manager."""
    yield from filter(None, [shutil.which(f"python{version}")])
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    uv = Path("~/.local/share/uv/python").expanduser()
    for folder in (*pyenv.glob(f"{version}*"), *uv.glob(f"cpython-{version}*")):
        yield str(folder / "bin" / f"python{version}")


def interpreter(version: str) -> str | None:
    """Return a Python of a version that starts, or None: a shim may lead nowhere."""
    for python in candidates(version):
        if (
            Path(python).exists()
            and subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0
        ):
            return python
    return None


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_a_golden_config_keeps_its_identity(vector: dict[str, Any]) -> None:
    """Document, config hash and basis hash are those written down when the scheme was made."""
    found = fingerprint(vector["config"])
    assert jcs(dict(found.document)).decode() == vector["canonical"]
    assert [found.config_digest, found.basis_digest, found.document_digest] == vector["digests"]
    assert (found.config_hash, found.basis_hash) == (found.config_digest[:12], found.basis_digest[:12])


def test_the_scheme_is_named_in_every_fingerprint() -> None:
    """A later change of scheme is seen as such, not as a change of config."""
    assert fingerprint({}).scheme == SCHEME == "resweep.config/1"


def test_a_depth_moves_the_config_hash_alone() -> None:
    """Adopting a new k leaves the basis, which its tuning is valid for."""
    usual, other, *_ = (fingerprint(vector["config"]) for vector in VECTORS[1:3])
    assert usual.basis_hash == other.basis_hash
    assert usual.config_hash != other.config_hash


def test_what_is_inert_moves_no_hash() -> None:
    """Timeouts, retries, batch sizes and log levels are stored, and count in neither hash."""
    usual, inert = fingerprint(VECTORS[1]["config"]), fingerprint(VECTORS[3]["config"])
    assert (usual.config_digest, usual.basis_digest) == (inert.config_digest, inert.basis_digest)
    assert usual.document_digest != inert.document_digest


@pytest.mark.parametrize("seed", ["0", "1", "random"])
def test_every_process_and_hash_seed_gives_one_identity(here: dict[str, Any], seed: str) -> None:
    """Sets, keys and objects come out the same in another process, whatever its hash seed."""
    found = run(sys.executable, seed)
    assert {key: found[key] for key in here} == here


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_every_python_gives_one_identity(here: dict[str, Any], version: str) -> None:
    """Equal on Python 3.11 to 3.13 (and later), with nothing but the standard library."""
    python = interpreter(version)
    if python is None:
        pytest.skip(f"no python{version} on this machine")
    found = run(python, "random")
    assert found["python_version"] == [int(part) for part in version.split(".")]
    assert {key: found[key] for key in here} == here
