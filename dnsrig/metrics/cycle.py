"""Whether a far secondary had each generation of a zone before the next one existed, and the bytes on the link for
it."""

from __future__ import annotations

import statistics

from dnsrig.metrics import metric
from dnsrig.runs import replication
from dnsrig.runs.trial import Trial


def _times_s(trial: Trial) -> list[float]:
    """Times of all generations; empty unless every one was served."""
    times = [each.time_s for each in replication.of(trial)]
    known = [time_s for time_s in times if time_s is not None]
    return known if len(known) == len(times) else []


@metric(title="slowest generation, relative to its cycle", unit="%", better="lower", order=10)
def cycle_share_percent(trial: Trial) -> float | None:
    """The longest time that a generation of the zone took from the primary's first answer with its serial or a later
    one to the secondary's, in percent of the time between two generations. Above 100 the secondary is late. None if a
    generation never arrived."""
    slowest_s = generation_max_s(trial)
    return None if slowest_s is None else 100 * slowest_s / float(trial.record.spec.options["cycle_s"])


@metric(title="time of a generation, longest", unit="s", better="lower", order=11)
def generation_max_s(trial: Trial) -> float | None:
    """The longest time from the primary's first answer with a generation's serial or a later one to the secondary's."""
    return max(_times_s(trial), default=None)


@metric(title="time of a generation, median", unit="s", better="lower", order=12)
def generation_p50_s(trial: Trial) -> float | None:
    """Median over generations of the time from the primary's first answer with its serial or a later one to the
    secondary's."""
    times = _times_s(trial)
    return statistics.median(times) if times else None


@metric(title="generations that were late", unit="generations", better="lower", order=13)
def generations_late(trial: Trial) -> float | None:
    """Generations that took longer than the time to the next one, and those that the secondary never had."""
    made = replication.of(trial)
    cycle_s = float(trial.record.spec.options["cycle_s"]) if made else 0.0
    return float(sum(each.time_s is None or each.time_s > cycle_s for each in made)) if made else None


@metric(title="generations skipped", unit="generations", better="lower", order=14)
def generations_skipped(trial: Trial) -> float | None:
    """Generations that the secondary never answered with, because it had gone on to a later one."""
    made = replication.of(trial)
    return float(sum(each.skipped for each in made)) if made else None


@metric(title="arrivals as large as the whole zone", unit="transfers", better="lower", order=15)
def generations_whole(trial: Trial) -> float | None:
    """Number of new serials on the secondary for which the primary sent, since the previous serial, at least 90 % of
    the bytes of the first transfer of the whole zone: AXFR instead of IXFR, AXFR after a failed IXFR, or an IXFR that
    saved nothing. Counted from the interface's bytes, to within 0.2 s."""
    arrivals = replication.arrivals(trial)
    return float(sum(each.whole for each in arrivals)) if arrivals else None


@metric(title="bytes of an arrival, relative to the whole zone", unit="%", better="lower", order=16)
def generation_bytes_percent(trial: Trial) -> float | None:
    """Bytes that the primary sent since the previous serial, in percent of the bytes of the first transfer of the whole
    zone, including headers and retransmissions: median over new serials on the secondary."""
    arrivals = replication.arrivals(trial)
    return 100 * statistics.median(each.share for each in arrivals) if arrivals else None


@metric(title="time to publish, longest", unit="s", better="neither", order=17)
def publication_max_s(trial: Trial) -> float | None:
    """The longest time from the command to load a generation to the primary's first answer with that serial or a later
    one."""
    times = [
        (each.published_ns - each.told_ns) / 1e9 for each in replication.of(trial) if each.published_ns is not None
    ]
    return max(times, default=None)
