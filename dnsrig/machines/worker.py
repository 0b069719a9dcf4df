"""The Dask worker on a machine that is reached over SSH. It ends with its standard input."""

from __future__ import annotations

import asyncio
import os
import threading
import traceback
from collections.abc import Callable
from typing import Any

from dnsrig import paths
from dnsrig.machines import arrival, dask_access
from dnsrig.machines.dask import PROFILER_OFF, RESOURCE, SHORT_LOGS

CLOSE_LIMIT_S = 10.0
endings: list[Callable[[], None]] = []
"""What is called before the worker ends. A module whose functions take long adds what ends them."""
ALONE = {
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.worker.http.routes": [],
    **PROFILER_OFF,
    **SHORT_LOGS,
}
"""The worker wakes as seldom as Dask lets it: a trial is measured beside it."""


def main(asked: dict[str, Any], is_ready: Callable[[], None]) -> None:
    """Work until standard input ends or is silent, or the scheduler is gone; then end the trial that is executed."""
    status = 1
    try:
        asyncio.run(_work(asked, is_ready))
        status = 0
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(status)  # whatever Dask's threads still wait for


async def _work(asked: dict[str, Any], is_ready: Callable[[], None]) -> None:
    import dask
    from distributed import Worker

    dask.config.set(ALONE)
    loop, gone = asyncio.get_running_loop(), asyncio.Event()
    threading.Thread(target=_listen, args=(lambda: loop.call_soon_threadsafe(gone.set),), daemon=True).start()
    worker = Worker(
        asked["scheduler"],
        name=asked["name"],
        nthreads=1,
        resources={RESOURCE: 1},
        protocol="tls://",
        host="127.0.0.1",
        port=asked["port"],
        contact_address=asked["contact"],
        security=dask_access.security({"worker": dask_access.Keys(**asked["keys"])}),
        memory_limit=0,
        dashboard=False,
        dashboard_address="127.0.0.1:0",
        local_directory=str(paths.cache() / "worker"),
    )
    working = asyncio.create_task(_live(worker, is_ready))
    await asyncio.wait([working, asyncio.create_task(gone.wait())], return_when=asyncio.FIRST_COMPLETED)
    if working.done():
        working.result()
    for end in endings:
        await asyncio.to_thread(end)
    try:
        await asyncio.wait_for(worker.close(timeout=CLOSE_LIMIT_S, executor_wait=False), CLOSE_LIMIT_S)
    except (TimeoutError, OSError):
        return  # there is no scheduler to say goodbye to


async def _live(worker: Any, is_ready: Callable[[], None]) -> None:
    """Report that the worker is ready as soon as its scheduler answers, for which Dask may wait for ever."""
    await worker
    is_ready()
    os.dup2(2, 1)
    await worker.finished()


def _listen(gone: Callable[[], Any]) -> None:
    for _ in arrival.lines():
        continue  # only signs of life are expected
    gone()
