"""Share of the clients' queries that reached the host of the server under test, from the number of packets that it
received.

Its interface counts them, so the check does not depend on the instrument's own report. A query over TCP or TLS takes
one or more packets, unless a client sends several queries at once; so there is only a lower limit. If a full socket
queue drops queries later, this is the server's result.
"""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs.trial import Trial

TITLE = "packets that the server under test received from clients"
UNIT = "% of the queries sent"
LEAST_PERCENT = 99.0


def look(trial: Trial) -> Seen:
    spec = trial.record.spec
    clients = [name for name, host in spec.hosts.items() if host.client_range]
    came = trial.links_growth(clients, "rx_packets")
    if came is None or not trial.load.sent:
        return cannot_tell("there are no samples of the link (samples.arrow), or no query was sent")
    interfaces = dict.fromkeys(spec.interface(trial.subject, name) for name in clients)
    series = tuple(f"{trial.subject}/{interface}/rx_packets" for interface in interfaces)
    return Seen(100 * came / trial.load.sent, least=LEAST_PERCENT, series=series)
