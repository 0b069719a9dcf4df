"""How servers fetch zones as secondaries, as their drivers declare it: policy, workers, SOA, and their work.

The work is of the machine that docs/results/transfers.md describes (one CPU for the server, storage in
memory): on another machine take it from a run of that machine's own (`fit`).
"""

from __future__ import annotations

from dnsrig.servers import all_drivers
from dnsrig.servers.behaviour import AsSecondary, Settings

WORK_SOURCE = "measured on a virtual machine of 2 CPUs: docs/results/transfers.md"
WORK_FACTOR = 3.0
"""Assumed: machines differ by so much."""
RECORDS_MEASURED = 6_500_000
"""Records of the large zone that the time of a record is from."""


def known() -> dict[str, AsSecondary]:
    """By kind."""
    return {kind: driver.as_secondary for kind, driver in all_drivers().items() if driver.as_secondary is not None}


def workers_of(kind: str, settings: Settings) -> int | None:
    """How many transfers a secondary of that kind has under way at once; None of a kind that is not known."""
    found = known().get(kind)
    return found.workers(settings) if found else None
