"""The Dask worker of a machine that is reached over SSH. Its standard input is its lifeline."""

from __future__ import annotations

import asyncio
import os
import select
import threading
import traceback
from collections.abc import Callable
from typing import Any

from dnsrig import paths
from dnsrig.experiment.children import TEARDOWN_LIMIT_S
from dnsrig.machines import tls, trial_calls
from dnsrig.machines.dask import PROFILER_OFF, RESOURCE, SHORT_LOGS

SILENCE_LIMIT_S = 30.0
"""As while it arrived: without a byte for so long, the network is gone."""
CLOSE_LIMIT_S = 10.0
ALONE = {
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.worker.http.routes": [],
    **PROFILER_OFF,
    **SHORT_LOGS,
}
"""It wakes as seldom as Dask lets it: a trial is measured beside it."""


def main(asked: dict[str, Any], is_ready: Callable[[], None]) -> None:
    """Until standard input ends or is silent, or the scheduler is gone; the trial that is executed then is ended."""
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
        security=tls.security({"worker": tls.Keys(**asked["keys"])}),
        memory_limit=0,
        dashboard=False,
        dashboard_address="127.0.0.1:0",
        local_directory=str(paths.cache() / "worker"),
    )
    working = asyncio.create_task(_live(worker, is_ready))
    await asyncio.wait([working, asyncio.create_task(gone.wait())], return_when=asyncio.FIRST_COMPLETED)
    if working.done():
        working.result()
    await asyncio.to_thread(trial_calls.end, TEARDOWN_LIMIT_S)
    try:
        await asyncio.wait_for(worker.close(timeout=CLOSE_LIMIT_S, executor_wait=False), CLOSE_LIMIT_S)
    except (TimeoutError, OSError):
        return  # nobody is there to be told


async def _live(worker: Any, is_ready: Callable[[], None]) -> None:
    """Dask waits for its scheduler as long as it takes, which may be for ever."""
    await worker
    is_ready()
    os.dup2(2, 1)
    await worker.finished()


def _listen(gone: Callable[[], Any]) -> None:
    while select.select([0], [], [], SILENCE_LIMIT_S)[0] and os.read(0, 1 << 10):
        continue
    gone()
