"""The agent as people run it: a process with a spool, a port and a store."""

from __future__ import annotations

import json
import os
import resource
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Agents = Callable[..., Any]
Until = Callable[..., Any]


def job(agent: Any, name: str) -> Any:
    """Return what the agent says of one of its jobs."""
    return next(one for one in agent.get("/v1/status")["agent"]["jobs"] if one["name"] == name)


def test_from_spool_to_flag_to_metric_and_back(traffic: Any, agents: Agents, until: Until) -> None:
    """A config change without a new tuned k expires it; accepting a depth clears the flag."""
    agent = agents(RESWEEP_DETECT_SWITCH_QUIET_S="0").started()
    old, new = traffic.config(), traffic.config(embedder={"model": "m2"})
    path = traffic.spool(agent.home, traffic.batch(1, old, ago=120))
    until(lambda: not path.exists())
    status, told = agent.call("/v1/accept", {"pipeline": "bot", "because": "test", "by": "me"})
    assert (status, told["tuned"][0]["context_k"]) == (200, 8)
    assert until(lambda: agent.metric("resweep_tuned_k_valid{"))[0] == 1
    traffic.spool(agent.home, traffic.batch(2, new, ago=60))
    traffic.spool(agent.home, traffic.batch(3, new))
    flag = until(lambda: [f for f in agent.get("/v1/flags")["flags"] if f["reason"] == "config_changed"])[0]
    assert "embedder.model changed from m1 to m2" in flag["message"]
    series = f'basis="{new.basis}",component="embedder",config="{new.config}",pipeline="bot"'
    assert agent.metric(f'resweep_sweep_required{{{series},reason="config_changed"}}') == [1]
    assert agent.get("/v1/status")["pipelines"][0]["verdict"] == "expired"
    other = {"pipeline": "bot", "context_k": 5, "document": {"embedder": {"model": "m3"}}}
    assert agent.call("/v1/accept", other)[1]["running"] == {"bot": new.basis}  # and not what was accepted
    assert agent.call("/v1/accept", {"pipeline": "bot", "context_k": 8})[1]["cleared"] == [flag["key"]]
    assert agent.metric(f'resweep_sweep_required{{{series},reason="config_changed"}}') == [0]
    assert agent.get("/v1/status")["pipelines"][0]["verdict"] == "valid"


def test_a_batch_counts_once_however_often_it_comes(traffic: Any, agents: Agents, until: Until) -> None:
    """Over HTTP twice, then out of the spool."""
    agent = agents().started()
    one = traffic.batch(1, traffic.config(), calls=7)
    assert traffic.send(agent, one) == (200, {"applied": True})
    assert traffic.send(agent, one) == (200, {"applied": False})
    path = traffic.spool(agent.home, one)
    until(lambda: not path.exists())
    assert agent.metric("resweep_retrievals_total") == [7]
    assert agent.metric('resweep_ingest_batches_total{outcome="duplicate"}') == [2]


def test_kill_9_loses_nothing(traffic: Any, agents: Agents, until: Until) -> None:
    """What was spooled before, during and after is counted once by the agent that comes next."""
    first = agents().started()
    record = traffic.config()
    for seq in range(30):
        traffic.spool(first.home, traffic.batch(seq, record, calls=1))
    until(lambda: first.metric("resweep_retrievals_total"))
    first.kill()
    for seq in range(20, 60):
        traffic.spool(first.home, traffic.batch(seq, record, calls=1))
    second = agents().started()
    until(lambda: second.metric("resweep_retrievals_total") == [60])


def test_a_standby_takes_over_after_kill_9(traffic: Any, agents: Agents, until: Until) -> None:
    """It answers health meanwhile, and says who leads for the rest."""
    first = agents(RESWEEP_TOKEN="t" * 20).started()
    traffic.send(first, traffic.batch(1, traffic.config(), calls=5))
    second = agents("--standby", RESWEEP_TOKEN="t" * 20).started()
    assert second.call("/healthz/ready")[1]["state"] == "standby"
    status, told = second.call("/v1/status")
    assert status == 503
    assert f"pid {first.process.pid}" in told["error"]
    assert first.url in told["error"]
    assert second.metric("resweep_leader") == [0]
    first.kill()
    until(lambda: second.call("/healthz/ready")[1]["state"] == "leader")
    assert second.metric("resweep_retrievals_total") == [5]
    assert traffic.send(second, traffic.batch(1, traffic.config(), calls=5)) == (200, {"applied": False})


def test_a_second_agent_without_standby_ends_with_5(agents: Agents) -> None:
    """And says who leads."""
    first = agents().started()
    second = agents()
    assert second.process.wait(20) == 5
    assert f"pid {first.process.pid} on {socket.gethostname()}" in second.log.read_text()
    assert first.call("/healthz/live")[0] == 200


def test_the_same_command_twice_ends_with_5(agents: Agents) -> None:
    """The port is taken by the very agent that leads on this store: that is said, not "another program"."""
    first = agents().started()
    second = agents("--listen", first.url.removeprefix("http://"))
    assert second.process.wait(20) == 5
    assert f"pid {first.process.pid} on {socket.gethostname()}" in second.log.read_text()


def test_a_port_in_use_ends_with_4(agents: Agents, tmp_path: Path) -> None:
    """With what to do; nothing of the store is touched."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        agent = agents("--listen", f"127.0.0.1:{port}")
        assert agent.process.wait(20) == 4
    assert "--listen 127.0.0.1:PORT" in agent.log.read_text()
    assert not list(tmp_path.rglob("*.db"))


def test_a_public_address_needs_a_token(agents: Agents) -> None:
    """Exit 2, with how to make one."""
    agent = agents("--listen", "0.0.0.0:0")
    assert agent.process.wait(20) == 2
    assert "RESWEEP_TOKEN" in agent.log.read_text()
    assert agents("--listen", "0.0.0.0:0", RESWEEP_TOKEN="s" * 32).started().url.startswith("http://0.0.0.0:")


def test_everything_but_health_needs_the_token(agents: Agents) -> None:
    """Also /metrics; pages send a stranger to the login. The agent's own token is for its owner alone."""
    agent = agents().started()
    for path in ("/metrics", "/v1/status", "/v1/flags", "/v1/nothing"):
        assert agent.call(path, token="wrong")[0] == 401
    assert agent.call("/", token="wrong") == (303, b"")
    assert agent.call("/healthz", token="wrong")[0] == 200
    assert stat.S_IMODE((agent.home / "token").stat().st_mode) == 0o600


def test_sigterm_ends_it_within_two_seconds_with_0(agents: Agents) -> None:
    """Even while a client keeps a connection open."""
    agent = agents().started()
    with socket.create_connection(("127.0.0.1", int(agent.url.rpartition(":")[2]))) as idle:
        idle.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
        idle.recv(100)
        assert agent.end() == 0
    assert not (agent.home / "agent.json").exists()


def test_sigterm_in_the_middle_of_a_flood_loses_nothing(traffic: Any, agents: Agents, until: Until) -> None:
    """What was not taken yet waits for the next agent."""
    first = agents().started()
    record = traffic.config()
    paths = [traffic.spool(first.home, traffic.batch(seq, record, calls=1)) for seq in range(400)]
    until(lambda: sum(path.exists() for path in paths) < 400)
    assert first.end() == 0
    second = agents().started()
    until(lambda: not any(path.exists() for path in paths), 60)
    assert second.metric("resweep_retrievals_total") == [400]


def test_what_the_judge_saw_survives_a_restart(traffic: Any, agents: Agents, until: Until) -> None:
    """The same flag, opened at the same time, told once."""
    first = agents().started()
    traffic.spool(first.home, traffic.batch(1, traffic.config()))
    before = until(lambda: first.get("/v1/flags")["flags"])
    assert first.end() == 0
    second = agents().started()
    time.sleep(1)
    after = second.get("/v1/flags?all=1")["flags"]
    assert [(f["key"], f["opened_ts"]) for f in after] == [(f["key"], f["opened_ts"]) for f in before]
    assert "flag opened" not in second.log.read_text()


def test_a_full_store_keeps_what_waits_and_says_so(
    traffic: Any, agents: Agents, until: Until, tmp_path: Path
) -> None:
    """The file size limit of the process stands for a full disk; a restart with room takes everything."""
    home = tmp_path / "full"
    agent = agents(home=home).started()
    limit = resource.prlimit(agent.process.pid, resource.RLIMIT_FSIZE)
    size = max(path.stat().st_size for path in home.glob("resweep.db*"))
    resource.prlimit(agent.process.pid, resource.RLIMIT_FSIZE, (size, limit[1]))
    configs = [traffic.config(index={"n": seq, "pad": "x" * 3000}) for seq in range(40)]
    paths = [traffic.spool(home, traffic.batch(seq, record, calls=1)) for seq, record in enumerate(configs)]
    until(lambda: job(agent, "ingest")["error"])
    assert agent.call("/healthz/live")[0] == 200
    assert any(path.exists() for path in paths)
    agent.kill()
    second = agents(home=home).started()
    until(lambda: not any(path.exists() for path in paths), 30)
    assert sum(second.metric("resweep_retrievals_total")) == 40


def test_a_read_only_home_ends_with_3(agents: Agents, tmp_path: Path) -> None:
    """One message that names the place."""
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    agent = agents(RESWEEP_HOME=str(blocked / "home"))
    assert agent.process.wait(20) == 3
    told = agent.log.read_text()
    assert str(blocked) in told
    assert "Traceback" not in told


def test_too_many_requests_are_429(agents: Agents) -> None:
    """Of one address; the next second it may ask again."""
    agent = agents(RESWEEP_LIMITS_REQUESTS_PER_SECOND="1").started()
    assert 429 in [agent.call("/healthz")[0] for _ in range(5)]


def test_no_secret_is_logged_or_shown(agents: Agents) -> None:
    """Neither the token nor the webhook's key, at the chattiest level."""
    secrets = {"RESWEEP_TOKEN": "tok-" + "a1" * 12, "RESWEEP_WEBHOOK_SECRET": "hook-" + "b2" * 12}
    hook = {"RESWEEP_WEBHOOK_URL": "http://127.0.0.1:9/x"}
    agent = agents("--log-format", "json", RESWEEP_LOG_LEVEL="debug", **hook, **secrets).started()
    agent.call("/v1/status")
    agent.call("/v1/status", token="wrong")
    shown = json.dumps(agent.get("/v1/status"))
    assert agent.end() == 0
    for secret in secrets.values():
        assert secret not in agent.log.read_text() + shown
    for line in agent.log.read_text().splitlines():
        json.loads(line)


def test_the_commands_find_the_agent_of_the_same_home(traffic: Any, agents: Agents, until: Until) -> None:
    """By the address and the token that it left there."""
    agent = agents().started()
    traffic.send(agent, traffic.batch(1, traffic.config()))
    until(lambda: agent.get("/v1/flags")["flags"])
    environ = {**os.environ, "RESWEEP_HOME": str(agent.home), "PYTHONPATH": os.pathsep.join(sys.path)}

    def run(*words: str) -> Any:
        command = [sys.executable, "-m", "resweep", *words, "--json"]
        done = subprocess.run(command, env=environ, cwd=agent.home, capture_output=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    assert run("status")["agent"]["pid"] == agent.process.pid
    (flag,) = run("flags", "list")["flags"]
    assert run("flags", "ack", flag["key"], "--because", "seen")["acknowledged"]["action"] == "ack"
    assert run("accept", "bot", "--k", "8", "--lock", "resweep.lock")["tuned"][0]["context_k"] == 8
    assert "context_k = 8" in (agent.home / "resweep.lock").read_text()
    assert run("flags", "list")["flags"] == []
    assert run("lock", "pull")["changed"] == []
    assert run("doctor")["findings"]
