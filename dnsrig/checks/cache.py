"""Number of packets that a resolver sent to the authority for each of its answers: none if names are in its cache, at
least one if they are not.

The share ``options.missing_share`` of the names was never asked for before. With a warm cache, one packet for twenty
answers is allowed: a record expires, or the resolver requests keys. With a cold cache, there must be at least nine
packets for ten answers that cannot be in the cache.
"""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs.trial import Trial

TITLE = "packets to the authority for each answer"
WARM_MOST = 0.05
COLD_LEAST = 0.9


def look(trial: Trial) -> Seen:
    answered, missing = trial.load.answered, float(trial.record.spec.options["missing_share"])
    primaries = trial.record.spec.primaries
    sent = trial.links_growth(primaries, "tx_packets")
    if not answered or sent is None:
        return cannot_tell("there are no answers, or no samples of the link to the authority")
    seen = sent / answered
    series = tuple(
        f"{trial.subject}/{trial.record.spec.interface(trial.subject, primary)}/tx_packets" for primary in primaries
    )
    asked = "uncached" if missing else "cached"
    if missing:
        return Seen(seen, least=COLD_LEAST * missing, asked=asked, series=series)
    return Seen(seen, most=WARM_MOST, asked=asked, series=series)
