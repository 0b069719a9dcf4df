"""Time that one change on a primary takes to reach very many secondaries, which the instrument `transfer` plays."""

from __future__ import annotations

from statistics import median

from dnsrig.metrics import metric
from dnsrig.runs import transfers
from dnsrig.runs.trial import Trial


def is_fan_out(trial: Trial) -> bool:
    """Whether a change was made for secondaries that the instrument played."""
    is_asked = trial.record.spec.main_metric == "last_done_s"
    return is_asked and bool(trial.transfer) and trial.measure is not None


def spread(trial: Trial) -> transfers.Spread | None:
    """How the change spread; None in other trials."""
    spec, measure = trial.record.spec, trial.measure
    if not is_fan_out(trial) or measure is None:
        return None
    serial = (spec.next_dataset or spec.dataset).serial
    return transfers.spread(
        trial.transfers, zones=spec.dataset.zones, serial=serial, since_ns=measure.start.monotonic_ns
    )


def _secondaries(trial: Trial) -> int:
    return int(trial.record.spec.options["secondaries"])


def _since_zero_s(seen: transfers.Spread | None, when_ns: float | None) -> float | None:
    """Seconds from the first NOTIFY."""
    return None if seen is None or seen.zero_ns is None or when_ns is None else (when_ns - seen.zero_ns) / 1e9


@metric(title="first NOTIFY to last secondary", unit="s", better="lower", order=10)
def last_done_s(trial: Trial) -> float | None:
    """Time from the first NOTIFY of a change (the first secondary's query after it) to the last message of the last
    transfer, after which every secondary has all its zones in the new version. None if one of them never had."""
    seen = spread(trial)
    complete = seen is not None and len(seen.arrived_ns) >= _secondaries(trial)
    return _since_zero_s(seen, seen.arrived_ns[-1]) if seen is not None and complete else None


@metric(title="first NOTIFY to half of the secondaries", unit="s", better="lower", order=11)
def half_done_s(trial: Trial) -> float | None:
    """Median over the secondaries of the time from the first NOTIFY until each had the new version. None if one of them
    never had."""
    seen = spread(trial)
    complete = seen is not None and len(seen.arrived_ns) >= _secondaries(trial)
    return _since_zero_s(seen, median(seen.arrived_ns)) if seen is not None and complete else None


@metric(title="first NOTIFY to first secondary", unit="s", better="lower", order=12)
def first_done_s(trial: Trial) -> float | None:
    """Time from the first NOTIFY until the first secondary had the new version."""
    seen = spread(trial)
    return _since_zero_s(seen, seen.arrived_ns[0]) if seen is not None and seen.arrived_ns else None


@metric(title="first NOTIFY to last NOTIFY", unit="s", better="lower", order=13)
def notify_spread_s(trial: Trial) -> float | None:
    """Time from the first to the last secondary that requested the new version after its NOTIFY."""
    seen = spread(trial)
    return _since_zero_s(seen, seen.asked_ns[-1]) if seen is not None and seen.asked_ns else None


@metric(title="change to first NOTIFY", unit="s", better="lower", order=14)
def change_to_notify_s(trial: Trial) -> float | None:
    """Time from the command to load the change to its first NOTIFY: loading, and any delay of the primary before
    NOTIFY. For a primary that makes changes by itself, the time that the instrument waited for a change."""
    seen, measure = spread(trial), trial.measure
    if seen is None or seen.zero_ns is None or measure is None:
        return None
    return (seen.zero_ns - measure.start.monotonic_ns) / 1e9


@metric(title="secondaries that have the change", unit="secondaries", better="higher", order=15, at_limit=is_fan_out)
def secondaries_done(trial: Trial) -> float | None:
    """Number of secondaries that had the new version before the trial ended."""
    seen = spread(trial)
    return None if seen is None else float(len(seen.arrived_ns))


@metric(title="secondaries fed a second", unit="secondaries/s", better="higher", order=15, at_limit=is_fan_out)
def secondaries_per_s(trial: Trial) -> float | None:
    """Number of secondaries that had the new version, divided by the time from the first NOTIFY to the last of them.
    None for a single one."""
    seen = spread(trial)
    if seen is None or len(seen.arrived_ns) < 2:
        return None
    time_s = _since_zero_s(seen, seen.arrived_ns[-1])
    return len(seen.arrived_ns) / time_s if time_s else None
