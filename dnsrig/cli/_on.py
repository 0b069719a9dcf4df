"""`--on MACHINES`: what a run is executed on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dnsrig.errors import UsageError

if TYPE_CHECKING:
    from dnsrig.experiment.machines.place import Place
    from dnsrig.experiment.runner import Executing

Option = Annotated[
    str,
    typer.Option(
        "--on",
        metavar="MACHINES",
        help="machines that are reached over SSH: a TOML file that names them; or those of a Dask cluster: the address of its scheduler",
    ),
]


@contextmanager
def places(machines: str) -> Iterator[Sequence[Place]]:
    """Of a TOML file, or of the Dask cluster at an address."""
    from dnsrig.experiment.machines import dask, document, ssh

    with ssh.workers(Path(machines)) if machines.endswith(document.SUFFIX) else dask.workers(machines) as found:
        yield found


@contextmanager
def executing(machines: str, at_once: int) -> Iterator[Executing]:
    """On ``machines``; empty: this machine, ``at_once`` trials at a time."""
    from dnsrig.experiment.runner import Local

    if not machines:
        yield Local(at_once)
        return
    if at_once != 1:
        raise UsageError("--at-once is for one machine", hint="each machine of --on executes one trial at a time")
    from dnsrig.experiment.machines import spread

    with places(machines) as found:
        yield spread.Spread(found)
