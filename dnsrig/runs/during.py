"""How much a counter of `watch` grew in some stretches of time, and outside of them: samples come every 100 ms, so by
interpolation."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from itertools import pairwise

from dnsrig.runs.trial import Trial

Stretch = tuple[int, int]
"""From, to: monotonic ns."""
WORK = ("cgroup", "cpu_usage_us"), ("psi", "cpu_some_us")


def growth_in(trial: Trial, series: tuple[str, str, str], stretches: Sequence[Stretch]) -> float | None:
    """Growth of ``series`` (host, source, metric) in all ``stretches``; None without samples around them."""
    found = growth_in_each(trial, series, stretches)
    return sum(found) if found else None


def growth_in_each(trial: Trial, series: tuple[str, str, str], stretches: Sequence[Stretch]) -> list[float]:
    """Growth of ``series`` in each stretch; empty without samples around them."""
    rows = trial.series(*series)
    times, values = rows["time_ns"].to_list(), rows["value"].to_list()
    if not stretches or len(times) < 2 or times[0] > stretches[0][0] or times[-1] < stretches[-1][1]:
        return []
    return [_at(times, values, end) - _at(times, values, start) for start, end in stretches]


def growth_around(
    trial: Trial, series: tuple[str, str, str], stretches: Sequence[Stretch], whole: Stretch
) -> float | None:
    """Growth of ``series`` in ``stretches``, for stretches that are shorter than the time between two samples.

    The samples around a stretch also contain time beside it. In this time the counter is assumed to grow as in the rest
    of ``whole``. None without samples.
    """
    rows = trial.series(*series)
    pairs = [
        (earlier[0], later[0], later[1] - earlier[1])
        for earlier, later in pairwise(zip(rows["time_ns"], rows["value"]))
        if earlier[0] < whole[1] and whole[0] < later[0]
    ]
    around = [pair for pair in pairs if any(pair[0] < end and start < pair[1] for start, end in stretches)]
    if not around:
        return None
    around_ns, all_ns = (sum(end - start for start, end, _ in some) for some in (around, pairs))
    grown, all_grown = (sum(growth for *_, growth in some) for some in (around, pairs))
    usual = (all_grown - grown) / (all_ns - around_ns) if all_ns > around_ns else 0.0
    beside_ns = around_ns - sum(end - start for start, end in stretches)
    return float(max(0.0, grown - usual * max(0, beside_ns)))


def without_cpu_percent(trial: Trial, host: str, stretches: Sequence[Stretch], whole: Stretch) -> float | None:
    """Share of ``stretches`` in which programs of ``host`` were ready to run and none of them had a CPU: other programs
    used it (PSI, ``full``), or the hypervisor took it (steal). None without samples."""
    spec = trial.record.spec
    cpus, machine = spec.hosts[host].cpus, spec.whole_machine(host)
    waited_us = growth_around(trial, (host, "psi", "cpu_full_us"), stretches, whole)
    stolen_us = [growth_around(trial, (machine, f"cpu{cpu}", "steal_us"), stretches, whole) for cpu in cpus]
    if waited_us is None and None in stolen_us:
        return None
    lacked_us = (waited_us or 0.0) + sum(each or 0.0 for each in stolen_us) / len(cpus)
    return min(100.0, 100 * lacked_us * 1e3 / sum(end - start for start, end in stretches))


def work_percent(trial: Trial, host: str, stretches: Sequence[Stretch]) -> float | None:
    """Share of ``stretches`` in which a host used its CPUs or waited for one (PSI); None without samples."""
    used_us, waited_us = (growth_in(trial, (host, *counter), stretches) for counter in WORK)
    if used_us is None:
        return None
    on_each_us = used_us / len(trial.record.spec.hosts[host].cpus) + (waited_us or 0.0)
    return 100 * on_each_us * 1e3 / sum(end - start for start, end in stretches)


def work_series(host: str) -> tuple[str, ...]:
    """The series that `work_percent` is of."""
    return tuple("/".join((host, *counter)) for counter in WORK)


def finest_ns(trial: Trial, series: tuple[str, str, str]) -> int | None:
    """The usual time between two samples."""
    between = trial.series(*series)["time_ns"].diff().median()
    return int(between) if isinstance(between, int | float) else None


def outside(stretches: Sequence[Stretch], whole: Stretch) -> list[Stretch]:
    """What ``stretches``, in the order of time, leave of ``whole``."""
    starts = [whole[0], *(end for _, end in stretches)]
    ends = [*(start for start, _ in stretches), whole[1]]
    return [(start, end) for start, end in zip(starts, ends) if start < end]


def _at(times: Sequence[int], values: Sequence[int], time_ns: int) -> float:
    place = min(max(1, bisect.bisect_left(times, time_ns)), len(times) - 1)
    (earlier, before), (later, after) = (times[place - 1], values[place - 1]), (times[place], values[place])
    return before + (after - before) * (time_ns - earlier) / max(1, later - earlier)
