"""A run whose number of repeats is not fixed: it gets another round until its intervals are narrow."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from dnsrig.comparison import summary
from dnsrig.experiment import resume
from dnsrig.rundir import Manifest
from dnsrig.runs.run import Run
from dnsrig.stats import stopping
from dnsrig.stats.statistics import Interval


def execute_until_narrow(
    manifest: Manifest, directory: Path, execute: Callable[[Manifest], int], out_of_time: Callable[[], None]
) -> int:
    """Call ``execute`` for the trials of ``manifest``, then for those of each further round that the run needs and has
    the time for.

    Returns how many trials failed because of dnsrig or the machine; after a failure there is no further round. Calls
    ``out_of_time`` if only the time of the run forbids another round.
    """
    began_s = time.monotonic()
    at_once, more = manifest.repeats, max(1, len(manifest.machines))
    while True:
        called_s = time.monotonic()
        failed = execute(manifest)
        now_s = time.monotonic()
        next_s = (now_s - called_s) / at_once * more
        if failed or is_complete(manifest, directory):
            return failed
        if not _fits(manifest, now_s - began_s + next_s):
            out_of_time()
            return failed
        manifest, at_once = resume.extend(directory, manifest.repeats + more, None), more


def _fits(manifest: Manifest, end_s: float) -> bool:
    """Whether rounds that end ``end_s`` after the run began are within its time."""
    return manifest.until is None or manifest.until.within_s is None or end_s <= manifest.until.within_s


def is_complete(manifest: Manifest, directory: Path) -> bool:
    """Whether the finished run in ``directory`` needs no further round."""
    until = manifest.until
    if until is None:
        return True
    found = intervals(Run.open(directory))
    return stopping.enough(manifest.repeats, found, percent=until.percent, least=until.least, most=until.most)


def intervals(run: Run) -> list[Interval | None]:
    """The intervals of the main metric: of the ratio to the baseline, or of the median where there is no baseline.

    A figure that more repeats cannot give is left out: that of a variant of which half of the trials reached their
    limit or a ceiling.
    """
    rows = summary.variant_table(run, summary.main_metric(run))
    compared = [row for row in rows if row.against is not None]
    found = []
    for row in compared or rows:
        if row.comparison is None:
            found += [row.samples.interval] if row.samples.has_median else []
        elif not row.comparison.bound and not row.unfinished:
            found.append(row.comparison.interval)
    return found
