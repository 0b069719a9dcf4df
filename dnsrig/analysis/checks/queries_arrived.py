"""Of the queries that clients sent, how many came to the host of the server under test, by the packets it received.

Its interface counts them, so it does not hang on what the instrument says of itself. A query over TCP or TLS is one
packet or more, unless a client sends several at once; so there is a lower limit only. What a full queue of a socket
drops afterwards is the server's doing, and a result.
"""

from __future__ import annotations

from dnsrig.analysis.checks import Seen, cannot_tell
from dnsrig.analysis.read import Trial

TITLE = "packets that the server under test received from clients"
UNIT = "% of the queries sent"
LEAST_PERCENT = 99.0


def look(trial: Trial) -> Seen:
    spec = trial.record.spec
    clients = [name for name, host in spec.hosts.items() if host.client_range]
    came = trial.links_growth(clients, "rx_packets")
    if came is None or not trial.load.sent:
        return cannot_tell("there are no samples of the link (samples.arrow), or nothing was sent")
    interfaces = dict.fromkeys(spec.interface(trial.subject, name) for name in clients)
    series = tuple(f"{trial.subject}/{interface}/rx_packets" for interface in interfaces)
    return Seen(100 * came / trial.load.sent, least=LEAST_PERCENT, series=series)
