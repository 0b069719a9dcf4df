"""Bytes from the primary that sent least, as a share of an even distribution: zones are divided evenly among several
primaries.
"""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs.trial import Trial

TITLE = "bytes from the primary that sent least"
UNIT = "% of an even share"
LEAST_PERCENT = 50.0


def look(trial: Trial) -> Seen:
    spec, primaries = trial.record.spec, trial.record.spec.primaries
    interfaces = [spec.interface(trial.subject, primary) for primary in primaries]
    if len({*interfaces}) < len(interfaces):
        return cannot_tell("one interface leads to several primaries")
    came = [trial.growth(trial.subject, interface, "rx_bytes") for interface in interfaces]
    nbytes = [each for each in came if each is not None]
    if len(nbytes) < len(came) or not sum(nbytes):
        return cannot_tell("there are no samples of the links to the primaries")
    series = tuple(f"{trial.subject}/{interface}/rx_bytes" for interface in interfaces)
    seen = 100 * min(nbytes) * len(nbytes) / sum(nbytes)
    return Seen(seen, least=LEAST_PERCENT, asked=len(primaries), series=series)
