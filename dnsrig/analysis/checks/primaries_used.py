"""How much came from the primary of which least came, of its fair share: zones are divided evenly among several primaries."""

from __future__ import annotations

from dnsrig.analysis.checks import Seen, cannot_tell
from dnsrig.analysis.read import Trial

TITLE = "octets from the primary that gave least"
UNIT = "% of a fair share"
LEAST_PERCENT = 50.0


def look(trial: Trial) -> Seen:
    primaries = trial.record.spec.primaries
    came = [trial.growth(trial.subject, f"link:{primary}", "rx_bytes") for primary in primaries]
    octets = [each for each in came if each is not None]
    if len(octets) < len(came) or not sum(octets):
        return cannot_tell("there are no samples of the links to the primaries")
    series = tuple(f"{trial.subject}/link:{primary}/rx_bytes" for primary in primaries)
    seen = 100 * min(octets) * len(octets) / sum(octets)
    return Seen(seen, least=LEAST_PERCENT, asked=len(primaries), series=series)
