"""The Dask worker of a machine that is reached over SSH. Its standard input is its lifeline."""

from __future__ import annotations

import asyncio
import os
import select
import threading
from collections.abc import Callable
from typing import Any

from dnsrig import paths
from dnsrig.experiment.children import TEARDOWN_LIMIT_S
from dnsrig.experiment.machines import there
from dnsrig.experiment.machines.dask import RESOURCE

SILENCE_LIMIT_S = 30.0
"""Without a byte for so long, the network is gone: no sshd may tell us for hours."""
CLOSE_LIMIT_S = 10.0
ALONE = {
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.worker.profile.enabled": False,
    "distributed.worker.http.routes": [],
}
"""It wakes as seldom as Dask lets it: a trial is measured beside it."""


def main(asked: dict[str, Any], is_ready: Callable[[], None]) -> None:
    """Until standard input ends or is silent, or the scheduler is gone; the trial that is executed then is ended."""
    asyncio.run(_work(asked, is_ready))
    os._exit(0)  # whatever Dask's threads still wait for


async def _work(asked: dict[str, Any], is_ready: Callable[[], None]) -> None:
    import dask
    from distributed import Security, Worker

    dask.config.set(ALONE)
    security = Security(
        require_encryption=True,
        tls_ca_file=asked["certificate"],
        tls_worker_cert=asked["certificate"],
        tls_worker_key=asked["key"],
    )
    loop, gone = asyncio.get_running_loop(), asyncio.Event()
    threading.Thread(target=_listen, args=(lambda: loop.call_soon_threadsafe(gone.set),), daemon=True).start()
    worker = await Worker(
        asked["scheduler"],
        name=asked["name"],
        nthreads=1,
        resources={RESOURCE: 1},
        protocol="tls://",
        host="127.0.0.1",
        port=asked["port"],
        contact_address=asked["contact"],
        security=security,
        memory_limit=0,
        dashboard=False,
        dashboard_address="127.0.0.1:0",
        local_directory=str(paths.cache() / "worker"),
    )
    is_ready()
    os.dup2(2, 1)
    ends = [asyncio.create_task(gone.wait()), asyncio.create_task(worker.finished())]
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    await asyncio.to_thread(there.end, TEARDOWN_LIMIT_S)
    try:
        await asyncio.wait_for(worker.close(timeout=CLOSE_LIMIT_S, executor_wait=False), CLOSE_LIMIT_S)
    except (TimeoutError, OSError):
        return  # nobody is there to be told


def _listen(gone: Callable[[], Any]) -> None:
    while select.select([0], [], [], SILENCE_LIMIT_S)[0] and os.read(0, 1 << 10):
        continue
    gone()
