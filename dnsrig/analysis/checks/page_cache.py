"""How much of the server's files was in the page cache (mincore(2)) when it started: a cold start has to read them from
the disk.

At most 2 % may be there when it is to be cold: what was read to look. At least 95 % when it is to be warm: the kernel
may drop pages for want of memory.
"""

from __future__ import annotations

from dnsrig.analysis.checks import Seen, cannot_tell
from dnsrig.analysis.read import Trial

TITLE = "files in the page cache at the start"
UNIT = "% of their pages"
COLD_MOST_PERCENT = 2.0
WARM_LEAST_PERCENT = 95.0


def look(trial: Trial) -> Seen:
    share = trial.record.instruments.get("page-cache", {}).get("cached_share")
    if share is None:
        return cannot_tell("nobody looked")
    if trial.record.spec.options["page_cache"] == "cold":
        return Seen(100 * share, most=COLD_MOST_PERCENT, asked="cold")
    return Seen(100 * share, least=WARM_LEAST_PERCENT, asked="warm")
