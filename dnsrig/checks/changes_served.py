"""Share of the changes accepted by the primary during the measurement that the server under test also served in that
time.

The observer asks the server under test for the SOA of up to 100 zones that change, about 200 times a second in total.
The server gives no answer for a catalog member that left, answers for one that came back, and answers with another
serial for a zone that changed. Changes of the last moments cannot be served in time. If a server applies changes late
or many at a time, this is a result, not a fault of the trial; `change-delay` shows how late. But a server that serves
almost none was at rest, so at least 10 % must be served, and at least three changes.
"""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs import changes
from dnsrig.runs.trial import Trial

TITLE = "changes served by the server under test"
UNIT = "% of accepted changes"
LEAST_PERCENT = 10.0
FEWEST = 3


def look(trial: Trial) -> Seen:
    if trial.followed.is_empty():
        return cannot_tell("the zones that change were not observed (followed.arrow has no rows)")
    followed = changes.followed(trial)
    served = sum(change.served_ns is not None for change in followed)
    share = 100 * served / len(followed) if followed else 0.0
    return Seen(
        share if served >= FEWEST else 0.0,
        least=LEAST_PERCENT,
        why=f"{served:,} of {len(followed):,} observed changes were served in time",
        series=("followed.arrow/seen_ns", "changes.arrow/accepted_ns"),
    )
