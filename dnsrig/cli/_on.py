"""`--on` and `--machines`: the machines that a run is executed on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dnsrig.errors import UsageError

if TYPE_CHECKING:
    from dnsrig.experiment.spread import Executing
    from dnsrig.machines.dask import Worker

Option = Annotated[
    str,
    typer.Option(
        "--on",
        metavar="MACHINES",
        help="machines to spread rounds over: a TOML file of machines reached over SSH, or the address of a Dask scheduler",
    ),
]
Machines = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="addresses of the machines that an experiment's hosts or --other-end name: a TOML file"
    ),
]


@contextmanager
def workers(machines: str) -> Iterator[Sequence[Worker]]:
    """Connect to the machines in a TOML file, or in the Dask cluster at an address."""
    from dnsrig.machines import dask, document, ssh_workers

    with ssh_workers.workers(Path(machines)) if machines.endswith(document.SUFFIX) else dask.workers(machines) as found:
        yield found


@contextmanager
def executing(machines: str, at_once: int) -> Iterator[Executing]:
    """How trials are executed on ``machines``; empty: on this machine, ``at_once`` at a time."""
    from dnsrig.experiment.runner import Local

    if not machines:
        yield Local(at_once)
        return
    if at_once != 1:
        raise UsageError(
            "--at-once works on one machine only", hint="each machine of --on executes one trial at a time"
        )
    from dnsrig.experiment import spread

    with workers(machines) as found:
        yield spread.Spread(found)
