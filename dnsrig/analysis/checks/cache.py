"""How many packets a resolver sent to the authority for each of its answers: none where names are in its cache, one and
more where they are not.

``options.missing_share`` of the names were never asked for before. A cache that is called warm may send one packet for
twenty answers: a record expires, a server is asked for its keys. One that is called cold must send nine for ten answers
that cannot be in it.
"""

from __future__ import annotations

from dnsrig.analysis.checks import Seen, cannot_tell
from dnsrig.analysis.read import Trial

TITLE = "packets to the authority for an answer"
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
