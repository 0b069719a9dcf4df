"""Share of the pages of the server's files that were in the page cache (mincore(2)) at its start. A cold start must
read them from disk.

For a cold start at most 2 % may be there: the check itself reads a few pages. For a warm start at least 95 %: the
kernel may drop pages if it lacks memory.
"""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs.trial import Trial

TITLE = "files in the page cache at the start"
UNIT = "% of their pages"
COLD_MOST_PERCENT = 2.0
WARM_LEAST_PERCENT = 95.0


def look(trial: Trial) -> Seen:
    share = trial.record.instruments.get("page-cache", {}).get("cached_share")
    if share is None:
        return cannot_tell("the page cache was not examined")
    if trial.record.spec.options["page_cache"] == "cold":
        return Seen(100 * share, most=COLD_MOST_PERCENT, asked="cold")
    return Seen(100 * share, least=WARM_LEAST_PERCENT, asked="warm")
