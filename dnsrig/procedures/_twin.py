"""A twin of a server: a process of the same configuration on the same host, which is tried and then ended; all that it
stored is removed. So the server that is measured starts with nothing, and was not asked before."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from dnsrig.procedures.context import TrialContext


@contextmanager
def running(context: TrialContext, name: str, what: str, *, limit_s: float) -> Iterator[None]:
    """The twin of the server of host ``name``, which has not started; ``what`` it is for is in its folder's name."""
    context.start_ready(name, limit_s=limit_s)
    yield
    placement = context.servers.forget(name)
    placement.directory.rename(placement.directory.with_name(f"{name}-{what}"))
    shutil.rmtree(placement.state)
