"""Facts that are read back from the hosts after the measurement, before servers are stopped, for the manipulation
checks and the report."""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

from dnsrig.lab import host
from dnsrig.procedures.context import TrialContext
from dnsrig.procedures.context.workspace import ServerFailed
from dnsrig.rundir import DEFAULTS_FILE, OBSERVER
from dnsrig.servers import driver_of
from dnsrig.servers.keys import XOT_PORT
from dnsrig.servers.placement import DNS_PORT, Placement

LISTEN = "0A"
AXFR_TYPE = 252
ANSWER_LIMIT_S = 2.0
RCODES = {0: "NOERROR", 1: "FORMERR", 2: "SERVFAIL", 5: "REFUSED", 9: "NOTAUTH"}
TABLES = ("tcp", "tcp6")
PRINT_LIMIT_S = 10.0
SHOW_LIMIT_S = 60.0
"""A configuration of 100,000 zones is read in seconds."""
LINE = re.compile(r"(?:^|[{};])\s*([\w.-]+)(?:\[default\])?([\w.-]*)[ \t]*[ \t:=][ \t]*([^{};\n]*)", re.MULTILINE)


def look(context: TrialContext) -> None:
    """Record facts as summaries, e.g. ``connections`` and ``settings``. Facts that cannot be seen are left out."""
    spec = context.spec
    if spec.runs_already:
        return  # nothing of a server can be read that dnsrig did not start
    with contextlib.suppress(OSError):
        context.summaries["connections"] = {
            "hosts": {
                name: connections(context, name)
                for name in (*spec.primaries, spec.subject)
                if context.host(name).machine is None
            }
        }
    primaries = [name for name, placement in context.servers.placements.items() if placement.role == "primary"]
    if spec.transfer.tsig and primaries:
        with contextlib.suppress(OSError):
            context.summaries["unsigned"] = {"answer": unsigned_transfer(context, primaries[0])}
    if context.workspace.state.exists():
        found = subprocess.run(
            ["stat", "-f", "-c", "%T", str(context.workspace.state)], capture_output=True, text=True, check=False
        )
        context.summaries["storage"] = {"file_system": found.stdout.strip()}
    if spec.subject in context.servers.placements:
        with contextlib.suppress(OSError):
            context.summaries["configured"] = configured(context.servers.placements[spec.subject])
        if shown := settings_in_force(context):
            context.summaries["settings"] = shown
        keep_defaults(context)


def configured(placement: Placement) -> dict[str, Any]:
    """Number of the trial's zones that the configuration of a server names; empty if it is not known."""
    named = driver_of(placement.source).configured(placement)
    wanted = {zone.name.rstrip(".") for zone in placement.zones}
    return {} if named is None else {"zones": len({name.rstrip(".") for name in named} & wanted)}


def connections(context: TrialContext, name: str) -> dict[str, Any]:
    """TCP connections for the questions of a host, or to a primary, by port, including those in TIME_WAIT."""
    with host.inside(context.host(name).namespace):
        lines = [line for table in TABLES for line in _lines(Path("/proc/thread-self/net", table))]
    return counted(lines, asked=context.spec.hosts[name].role == "primary")


def counted(lines: list[str], *, asked: bool) -> dict[str, Any]:
    """Connections by port, and number of the host's addresses in them, from ``lines`` of /proc/net/tcp (proc(5)).

    The port is the host's own if it is ``asked``, otherwise the port of the other end.

    Connections in the other direction are not transfers: BIND sends a NOTIFY over TCP if it gets no answer over UDP.

    >>> counted(["0: 020012C6:9C40 010012C6:0355 06", "1: 00000000:0035 00000000:0000 0A"], asked=False)
    {'ports': {'853': 1}, 'sources': 1}
    """
    ports, sources = Counter[str](), set()
    for line in lines:
        _, local, remote, state, *_ = line.split()
        if state == LISTEN:
            continue
        (address, own), (_, other) = local.rsplit(":", 1), remote.rsplit(":", 1)
        for port in (DNS_PORT, XOT_PORT):
            if port == int(own if asked else other, 16):
                ports[str(port)] += 1
                sources.add(address)
    return {"ports": dict(ports), "sources": len(sources)}


def _lines(table: Path) -> list[str]:
    return table.read_text().splitlines()[1:] if table.exists() else []


def unsigned_transfer(context: TrialContext, primary: str) -> str:
    """Answer of a primary to an unsigned AXFR of its first zone: an RCODE, ``by closing`` or ``nothing``."""
    zone = context.servers.placements[primary].zones[0].name
    labels = [label.encode() for label in zone.rstrip(".").split(".")]
    name = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
    query = b"\0\x01\0\0\0\x01\0\0\0\0\0\0" + name + AXFR_TYPE.to_bytes(2) + b"\0\x01"
    with host.inside(context.host(OBSERVER).namespace):
        connection = socket.socket(context.host(primary).family, socket.SOCK_STREAM)
    with connection:
        connection.settimeout(ANSWER_LIMIT_S)
        try:
            connection.connect((str(context.host(primary).address), DNS_PORT))
            connection.sendall(len(query).to_bytes(2) + query)
            head = b""
            while len(head) < 6 and (more := connection.recv(6 - len(head))):
                head += more
        except TimeoutError:
            return "nothing"
        except ConnectionError:
            return "by closing"
    return RCODES.get(head[5] & 15, "another RCODE") if len(head) == 6 else "by closing"


def settings_in_force(context: TrialContext) -> dict[str, str]:
    """Setting -> value in force, for the settings of the server under test that the experiment sets; empty if the
    server does not show them."""
    name = context.spec.subject
    placement = context.servers.placements[name]
    command = driver_of(placement.source).settings_command
    if not command or not placement.settings:
        return {}
    try:
        text = context.servers.printed(name, placement.words(command), limit_s=SHOW_LIMIT_S)
        return shown(text, placement.settings)
    except (ServerFailed, TimeoutExpired, OSError):
        return {}


def shown(text: str, names: Iterable[str]) -> dict[str, str]:
    """The first value of each of ``names`` in ``text``, in any of the syntaxes of servers.

    >>> shown("a = 1\\nb: 2\\nt[default].c = 3\\nzone x { d 4; };\\ne { f 5; };", ["a", "b", "t.c", "d", "e"])
    {'a': '1', 'b': '2', 't.c': '3', 'd': '4'}
    """
    found: dict[str, str] = {}
    for match in LINE.finditer(text):
        if value := match[3].strip():  # a block has no value
            found.setdefault(match[1] + match[2], value)
    # NSD prints a pattern without its name.
    return {name: found[key] for name in names if (key := name.removeprefix("pattern.")) in found}


def keep_defaults(context: TrialContext) -> None:
    """Keep the defaults that the server under test prints, as ``servers/<host>/defaults.txt``. Not every version of a
    server prints them."""
    name = context.spec.subject
    placement = context.servers.placements[name]
    command = driver_of(placement.source).defaults_command
    if not command:
        return
    try:
        text = context.servers.printed(name, command, limit_s=PRINT_LIMIT_S)
        (placement.directory / DEFAULTS_FILE).write_text(text)
    except (ServerFailed, TimeoutExpired, OSError):
        return
