"""`dnsrig clean`: remove what interrupted trials left behind."""

from __future__ import annotations

import typer

from dnsrig.errors import DnsrigError


def add(app: typer.Typer) -> None:
    app.command("clean")(command)


def command() -> None:
    """Remove network namespaces, cgroups and processes of trials that died. Touches only what carries dnsrig's mark.

    Runs by itself at the start of every trial. Trials that are running are left alone.
    """
    from dnsrig.lab import ledger, removal

    removed, left = removal.clean()
    for tag in removed:
        print(f"removed what trial {tag} had left")
    for tag in ledger.live():
        print(f"trial {tag} is running: left alone")
    if left:
        raise DnsrigError(f"could not remove {', '.join(left)}", hint="run it again as root, in a moment")
    if not removed:
        print("nothing to remove")
