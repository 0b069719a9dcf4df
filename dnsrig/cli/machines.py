"""`dnsrig machines`: prepare machines so that runs can be spread over them."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Annotated

import typer

from dnsrig import outputs
from dnsrig.errors import UsageError

VALID = datetime.timedelta(days=365)
CLOCKS_APART = datetime.timedelta(days=1)
"""Largest time by which the clock of a machine may be behind ours."""


def add(app: typer.Typer) -> None:
    group = typer.Typer(no_args_is_help=True, help="Prepare other machines for distributed runs.")
    group.command("certificates")(certificates)
    app.add_typer(group, name="machines")


def certificates(
    folder: Annotated[Path, typer.Argument(help="new folder for the files")] = Path("certificates"),
) -> None:
    """Make the certificates of a Dask cluster.

    Examples:

        dnsrig machines certificates
        DASK_CONFIG=certificates/client.json dnsrig check --on tls://rack-1:8786

    Writes a file for the scheduler, a file for the workers and a file for the client. Dask, started with
    DASK_CONFIG=FILE, then encrypts its connections, and accepts only programs with another of these files. Anybody who
    can read one of the files can execute anything on the machines as root, so only their owner may read them. They are
    valid for a year. To replace them, make a new folder, and start the cluster again.
    """
    from dnsrig.machines import dask, dask_access

    now = datetime.datetime.now(datetime.UTC)
    made = dask_access.make_keys((now - CLOCKS_APART, now + VALID))
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError as error:
        raise UsageError(
            f"{folder} exists", hint="name a new folder: certificates from two folders do not accept each other"
        ) from error
    for role, keys in made.items():
        path = folder / f"{role}.json"
        outputs.write_private(path, json.dumps(dask.settings(role, keys), indent=2).encode())
        print(path)
