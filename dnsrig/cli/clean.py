"""`dnsrig clean`: remove what interrupted trials left behind."""

from __future__ import annotations

import typer

from dnsrig.errors import DnsrigError


def add(app: typer.Typer) -> None:
    app.command("clean")(command)


def command() -> None:
    """Remove what interrupted trials left behind.

    Example: dnsrig clean

    Removes network namespaces, cgroups and processes, but only those with dnsrig's mark. Trials that are running are
    left alone. Every trial does this before it starts.
    """
    from dnsrig.lab import ledger, removal

    removed, left = removal.clean()
    for tag in removed:
        print(f"removed what trial {tag} had left behind")
    for tag in ledger.live():
        print(f"trial {tag} is running: left alone")
    if left:
        raise DnsrigError(f"could not remove {', '.join(left)}", hint="run it again as root, in a moment")
    if not removed:
        print("nothing to remove")
