"""How much came from the primary of which least came, of its fair share: zones are divided evenly among several
primaries."""

from __future__ import annotations

from dnsrig.analysis.checks import Seen, cannot_tell
from dnsrig.analysis.read import Trial

TITLE = "bytes from the primary that gave least"
UNIT = "% of a fair share"
LEAST_PERCENT = 50.0


def look(trial: Trial) -> Seen:
    primaries = trial.record.spec.primaries
    came = [trial.growth(trial.subject, f"link:{primary}", "rx_bytes") for primary in primaries]
    nbytes = [each for each in came if each is not None]
    if len(nbytes) < len(came) or not sum(nbytes):
        return cannot_tell("there are no samples of the links to the primaries")
    series = tuple(f"{trial.subject}/link:{primary}/rx_bytes" for primary in primaries)
    seen = 100 * min(nbytes) * len(nbytes) / sum(nbytes)
    return Seen(seen, least=LEAST_PERCENT, asked=len(primaries), series=series)
