"""Real servers: gunicorn with a preloaded app and recycled workers, uvicorn's workers, Celery's prefork."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from resweep.domain.batch import Batch, decode_batch

pytestmark = pytest.mark.integration
REQUESTS = 400

APP = """
import json, os
import resweep

@lambda f: resweep.watch(f, pipeline="shop", config={"context_k": 3})
def retrieve(query):
    return [{"id": f"p{i}", "text": "words", "score": 1 - i / 10} for i in range(3)]

def wsgi(environ, start_response):
    retrieve(environ["QUERY_STRING"])
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(os.getpid()).encode()]

async def asgi(scope, receive, send):
    if scope["type"] != "http":
        return
    retrieve(scope["query_string"].decode())
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(os.getpid()).encode()})
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def server(folder: Path, command: list[str], port: int) -> Iterator[None]:
    """Run a server over the app until the block ends, then let it end by itself."""
    (folder / "app.py").write_text(APP)
    path = ":".join([str(folder), *sys.path])
    environ = {**os.environ, "PYTHONPATH": path, "RESWEEP_HOME": str(folder / "home")}
    log = (folder / "log").open("w")
    process = subprocess.Popen(command, cwd=folder, env=environ, stdout=log, stderr=log)
    try:
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        log.close()


def ask(port: int, times: int) -> tuple[int, set[str]]:
    """Ask so often; return how many answers came, and from which processes."""

    def one(number: int) -> str | None:
        url = f"http://127.0.0.1:{port}/?q{number}"
        for _ in range(20):
            try:
                with urllib.request.urlopen(url, timeout=10) as response:
                    return str(response.read().decode())
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)  # a worker that is being replaced refused it before the app was called
        return None

    with ThreadPoolExecutor(4) as pool:
        answers = [answer for answer in pool.map(one, range(times)) if answer]
    return len(answers), set(answers)


def batches(folder: Path) -> list[Batch]:
    return [decode_batch(file.read_bytes()) for file in (folder / "home" / "spool").glob("*.json")]


def calls(folder: Path) -> int:
    return sum(window.get("retrievals") for batch in batches(folder) for window in batch.windows)


def test_gunicorn_preloads_and_recycles_and_loses_nothing(tmp_path: Path) -> None:
    """4 workers that end after about 8 requests each: some 50 of them, and every call is counted."""
    if shutil.which("gunicorn", path=os.path.dirname(sys.executable)) is None:
        pytest.skip("needs gunicorn")
    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "--preload", "--workers", "4", "--max-requests", "8"]
    with server(tmp_path, [*command, "--bind", f"127.0.0.1:{port}", "app:wsgi"], port):
        answered, workers = ask(port, REQUESTS)
    assert answered == REQUESTS
    assert len(workers) >= 40
    assert calls(tmp_path) == REQUESTS
    assert len({batch.writer for batch in batches(tmp_path)}) == len(workers)
    assert not list((tmp_path / "home" / "spool").glob(".*"))


def test_uvicorn_workers_lose_nothing(tmp_path: Path) -> None:
    """Two spawned workers, ended by the signal that a deploy sends."""
    pytest.importorskip("uvicorn")
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "--workers", "2", "--port", str(port), "app:asgi"]
    with server(tmp_path, command, port):
        answered, _ = ask(port, 60)
    assert answered == 60
    assert calls(tmp_path) == 60


CELERY_LIKE = """
import os
from billiard import Process
import app

def work():
    for number in range(25):
        app.retrieve(f"q{number}")

if __name__ == "__main__":
    workers = [Process(target=work) for _ in range(3)]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
"""


def test_a_prefork_like_celerys_loses_nothing(tmp_path: Path) -> None:
    """billiard's processes skip atexit too."""
    pytest.importorskip("billiard")
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "prefork.py").write_text(CELERY_LIKE)
    environ = {**os.environ, "PYTHONPATH": ":".join(sys.path), "RESWEEP_HOME": str(tmp_path / "home")}
    subprocess.run([sys.executable, "prefork.py"], cwd=tmp_path, env=environ, check=True, timeout=60)
    assert calls(tmp_path) == 75
