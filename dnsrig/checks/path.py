"""Share of the emulated links that behaved as requested in a test before the trial: delay, loss, order, MTU
(docs/explanation/network.md).
"""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs.trial import Trial
from dnsrig.text import digits

TITLE = "emulated links as requested"
UNIT = "%"


def look(trial: Trial) -> Seen:
    ends = [set(link.ends) for link in trial.record.spec.links if link.emulated]
    found = [check for check in trial.record.link_checks if {check.get("from"), check.get("to")} in ends]
    if not found:
        return cannot_tell("no emulated link was tested before the start")
    good = [check for check in found if check.get("works") and not check.get("wrong")]
    told = ", ".join(f"{digits(check['rtt_median_us'] / 1e3, 4)} ms" for check in found if check.get("rtt_median_us"))
    return Seen(100 * len(good) / len(found), least=100.0, why=f"round trips {told}" if told else "")
