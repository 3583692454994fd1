"""Running an agent as a process: listen, lead or stand by, and end within two seconds when told to."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator

import uvicorn

from resweep.domain.errors import AddressInUseError, StoreError
from resweep.serve import http, places
from resweep.serve.agent import Agent, check_led
from resweep.serve.listen import Endpoint, bind, bound, check_public, endpoint
from resweep.serve.logs import set_up
from resweep.settings import Settings

log = logging.getLogger("resweep.serve")

GRACE_S = 1  # seconds that answers under way have when the agent ends


class Server(uvicorn.Server):
    """A server that leaves signals to us: uvicorn would raise them again once it is done."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield


def run(settings: Settings, told: Callable[[Endpoint, places.Places], None]) -> int:
    """Run an agent until SIGTERM or Ctrl-C; return the exit code.

    `told` is called with the address once it listens. Raises UsageError, AddressInUseError, StoreError or
    LeaseHeldError where it cannot start; then nothing is left behind.
    """
    set_up(settings.agent.log_format, settings.agent.log_level)
    at = endpoint(settings.agent.listen)
    places.check_token(settings.agent.token)
    check_public(at, settings.agent.token)
    where = places.places(settings)
    listener = _bind(at, settings, where)
    address = places.Address(
        listening=f"http://{bound(listener)}", pid=os.getpid(), host=socket.gethostname()
    )
    try:
        agent = Agent(settings, where, address=address)
        token = places.token_of(settings, where) or places.make_token(where)
        try:
            agent.start()
            asyncio.run(_serve(agent, listener, token, told))
        finally:
            agent.stop()
    finally:
        listener.close()
    return 0


def _bind(at: Endpoint, settings: Settings, where: places.Places) -> socket.socket:
    """Bind; where the address is taken by the agent that leads on this very store, say that instead."""
    try:
        return bind(at)
    except AddressInUseError:
        if not settings.agent.standby:
            with contextlib.suppress(StoreError):
                check_led(where)
        raise


async def _serve(
    agent: Agent, listener: socket.socket, token: str, told: Callable[[Endpoint, places.Places], None]
) -> None:
    config = uvicorn.Config(
        http.app(agent, token),
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # whose headers are believed is web.proxy_addresses' to say
        lifespan="off",
        timeout_graceful_shutdown=GRACE_S,
        limit_concurrency=200,
        h11_max_incomplete_event_size=32 * 1024,
    )
    server = Server(config)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _end, server)
    told(bound(listener), agent.where)
    await server.serve(sockets=[listener])


def _end(server: uvicorn.Server) -> None:
    server.should_exit = True


def leave(code: int) -> None:
    """End the process now, where a thread hangs in a call that nobody can interrupt."""
    others = [t for t in threading.enumerate() if t is not threading.main_thread() and not t.daemon]
    logging.shutdown()
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    if others:
        os._exit(code)
