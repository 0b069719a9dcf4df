"""Number of connections that the server under test accepted during the load: none over UDP, at least one for each
client over TCP and TLS.

The kernel of its host counts them (`PassiveOpens` of RFC 1213), so the check does not depend on the load's own report.
For a secondary or a primary that also transfers zones, only the lower limit applies. Connections with which dnsrig
reads a resolver's counters do not count.
"""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs.trial import Trial

TITLE = "connections accepted by the server under test"


def look(trial: Trial) -> Seen:
    opened = trial.growth(trial.subject, "tcp", "passive_opens")
    if opened is None:
        return cannot_tell("there are no samples of TCP (samples.arrow)")
    opened = max(0.0, opened - trial.record.instruments.get("statistics", {}).get("connections", 0))
    options = trial.record.spec.options
    series = (f"{trial.subject}/tcp/passive_opens",)
    if options["transport"] == "udp":
        alone = options["transfers"] == "none" and options["changes"] == "none"
        return Seen(int(opened), most=0 if alone else None, least=None if alone else 0, asked="udp", series=series)
    return Seen(int(opened), least=int(options["clients"]), asked=str(options["transport"]), series=series)
