"""The defaults of the server under test, as it prints them itself: ``servers/<host>/defaults.txt``."""

from __future__ import annotations

from subprocess import TimeoutExpired

from dnsrig.procedures.context import TrialContext
from dnsrig.procedures.context.workspace import ServerFailed
from dnsrig.rundir import DEFAULTS_FILE
from dnsrig.servers import driver
from dnsrig.servers.driver import Preparation

PRINT_LIMIT_S = 10.0


def keep(context: TrialContext) -> None:
    """Keep what it prints; nothing where it does not, as earlier versions of some servers."""
    name = context.spec.subject
    placement = context.servers.placements[name]
    command = driver(placement.source.kind).defaults_command
    if not command:
        return
    try:
        context.servers.run(name, Preparation([*command], DEFAULTS_FILE), limit_s=PRINT_LIMIT_S)
        text = (placement.state / DEFAULTS_FILE).read_text(errors="replace")
        (placement.directory / DEFAULTS_FILE).write_text(text)
    except (ServerFailed, TimeoutExpired, OSError):
        return
