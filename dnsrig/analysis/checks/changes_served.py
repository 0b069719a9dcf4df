"""Of the changes that the primary accepted while the trial measured, how many the server under test then served within
it.

The observer asks the server under test for the SOA of up to 100 zones that change, some 200 times a second in all: a
member of the catalog that left is not answered for, one that came back is, and a changed zone has another serial.
Changes of the last moments cannot be served in time, and a server that takes changes late or many at a time is a
result, not a fault of the trial: how late stands in `change-delay`. But one that serves hardly any was at rest, so a
tenth of them must be seen, and at least three.
"""

from __future__ import annotations

from dnsrig.analysis import changes
from dnsrig.analysis.checks import Seen, cannot_tell
from dnsrig.analysis.read import Trial

TITLE = "changes served by the server under test"
UNIT = "% of those accepted"
LEAST_PERCENT = 10.0
FEWEST = 3


def look(trial: Trial) -> Seen:
    if trial.followed.is_empty():
        return cannot_tell("nobody followed the zones that change (followed.arrow)")
    followed = changes.followed(trial)
    served = sum(change.served_ns is not None for change in followed)
    share = 100 * served / len(followed) if followed else 0.0
    return Seen(
        share if served >= FEWEST else 0.0,
        least=LEAST_PERCENT,
        why=f"{served:,} of {len(followed):,} that were followed were served within it",
        series=("followed.arrow/seen_ns", "changes.arrow/accepted_ns"),
    )
