"""The defaults of the server under test, as it prints them itself: ``servers/<host>/defaults.txt``."""

from __future__ import annotations

from subprocess import TimeoutExpired

from dnsrig.procedures.context import TrialContext
from dnsrig.procedures.context.workspace import ServerFailed
from dnsrig.rundir import DEFAULTS_FILE
from dnsrig.servers import driver

PRINT_LIMIT_S = 10.0


def keep(context: TrialContext) -> None:
    """Keep what it prints; nothing where it does not, as earlier versions of some servers."""
    name = context.spec.subject
    placement = context.servers.placements[name]
    command = driver(placement.source.kind).defaults_command
    if not command:
        return
    try:
        text = context.servers.printed(name, command, limit_s=PRINT_LIMIT_S)
        (placement.directory / DEFAULTS_FILE).write_text(text)
    except (ServerFailed, TimeoutExpired, OSError):
        return
