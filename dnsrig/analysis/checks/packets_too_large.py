"""How many packets met the MTU of the path, which is below the interfaces', and were dropped there: without one, it was never in the way."""

from __future__ import annotations

from dnsrig.analysis.checks import Seen, cannot_tell
from dnsrig.analysis.read import Trial

TITLE = "packets dropped for their size"


def look(trial: Trial) -> Seen:
    rows = [rows for rows in trial.links().values() if not rows.is_empty()]
    if not rows:
        return cannot_tell("the link kept no account (only `tun` does)")
    return Seen(sum(int(each["too_big"].sum()) for each in rows), least=1, series=("link/too_big",))
