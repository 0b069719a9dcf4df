"""Share of the TCP connections between the server under test and its primaries to the port of the transport: 853 for
XoT (RFC 9103), otherwise 53.

The hosts' kernels list them at the end of `measure`. A closed connection remains listed for a minute on the side that
closed it (TIME_WAIT). If a host keeps fewer (`tcp_max_tw_buckets`), only the last ones are listed.
"""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs.trial import Trial

TITLE = "connections to the port of the transport"
UNIT = "%"
PORTS = {True: "853", False: "53"}


def look(trial: Trial) -> Seen:
    ports: dict[str, int] = {}
    for listed in trial.record.instruments.get("connections", {}).get("hosts", {}).values():
        for port, count in listed.get("ports", {}).items():
            ports[port] = ports.get(port, 0) + count
    if not (found := sum(ports.values())):
        return cannot_tell("no connection was listed at the end")
    port = PORTS[trial.record.spec.transfer.tls]
    told = ", ".join(f"{count:,} to {name}" for name, count in ports.items())
    return Seen(100 * ports.get(port, 0) / found, least=100.0, asked=trial.record.spec.transfer.transport, why=told)
