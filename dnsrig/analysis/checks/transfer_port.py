"""Of the TCP connections between the server under test and its primaries, how many went to the port that the transport
says: 853 for XoT (RFC 9103), else 53.

As the kernels of the hosts list them at the end of `measure`: a connection that was closed stays listed for a minute on
the side that closed it (TIME_WAIT). Where a host keeps fewer (`tcp_max_tw_buckets`) the last ones are listed.
"""

from __future__ import annotations

from dnsrig.analysis.checks import Seen, cannot_tell
from dnsrig.analysis.read import Trial

TITLE = "connections to the port of the transport"
UNIT = "%"
PORTS = {True: "853", False: "53"}


def look(trial: Trial) -> Seen:
    ports: dict[str, int] = {}
    for listed in trial.record.instruments.get("connections", {}).get("hosts", {}).values():
        for port, count in listed.get("ports", {}).items():
            ports[port] = ports.get(port, 0) + count
    if not (found := sum(ports.values())):
        return cannot_tell("no connection was listed any more at the end")
    port = PORTS[trial.record.spec.transfer.tls]
    told = ", ".join(f"{count:,} to {name}" for name, count in ports.items())
    return Seen(100 * ports.get(port, 0) / found, least=100.0, asked=trial.record.spec.transfer.transport, why=told)
