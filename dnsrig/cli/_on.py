"""`--on ADDRESS`: what a run is executed on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from dnsrig.errors import UsageError

if TYPE_CHECKING:
    from dnsrig.experiment.runner import Executing

Option = Annotated[
    str, typer.Option("--on", metavar="ADDRESS", help="the machines of a Dask cluster: the address of its scheduler")
]


@contextmanager
def executing(address: str, at_once: int) -> Iterator[Executing]:
    """The machines of the cluster at ``address``; empty: this machine, ``at_once`` trials at a time."""
    from dnsrig.experiment.runner import Local

    if not address:
        yield Local(at_once)
        return
    if at_once != 1:
        raise UsageError("--at-once is for one machine", hint="each machine of --on executes one trial at a time")
    from dnsrig.experiment.machines import dask, spread

    with dask.workers(address) as places:
        yield spread.Spread(places)
