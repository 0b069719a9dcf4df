"""Time that changes on a primary take to reach its secondaries, and its resolution."""

from __future__ import annotations

from dnsrig.metrics import metric
from dnsrig.runs.trial import Trial


def _of(trial: Trial, spread: str, statistic: str) -> float | None:
    """A figure of a spread in the summary of `propagation`, in ms; None if missing."""
    found = trial.record.instruments.get("propagation", {}).get(spread)
    return None if found is None else float(found[statistic]) / 1e6


@metric(title="propagation, median", unit="ms", better="lower", order=10)
def propagation_p50_ms(trial: Trial) -> float | None:
    """Median over all changes and secondaries of the time from sending the update to the primary to the secondary's
    first answer with its serial or a later one. A change that did not arrive counts with the time after which dnsrig
    gave up."""
    return _of(trial, "propagation_ns", "p50")


@metric(title="propagation, mean", unit="ms", better="lower", order=11)
def propagation_mean_ms(trial: Trial) -> float | None:
    """Mean over all changes and secondaries of the time from sending the update to the secondary's first answer with
    its serial or a later one. If it differs from the median, a timer may delay some of the changes."""
    return _of(trial, "propagation_ns", "mean")


@metric(title="propagation, 99 %", unit="ms", better="lower", order=11)
def propagation_p99_ms(trial: Trial) -> float | None:
    """The time that 99 % of all arrivals, over changes and secondaries, did not exceed."""
    return _of(trial, "propagation_ns", "p99")


@metric(title="propagation, longest", unit="ms", better="lower", order=12)
def propagation_max_ms(trial: Trial) -> float | None:
    """The longest time of any change to any secondary."""
    return _of(trial, "propagation_ns", "max")


@metric(title="propagation to the last secondary, median", unit="ms", better="lower", order=13)
def propagation_last_p50_ms(trial: Trial) -> float | None:
    """Median over changes of the time from sending the update until the last of the secondaries had it."""
    return _of(trial, "last_ns", "p50")


@metric(title="propagation after acceptance, median", unit="ms", better="lower", order=14)
def propagation_after_acceptance_p50_ms(trial: Trial) -> float | None:
    """Median over changes and secondaries of the time from the primary's answer to the update to the arrival. Below
    zero if a secondary had the change before the primary's answer was received."""
    return _of(trial, "from_acceptance_ns", "p50")


@metric(title="acceptance by the primary, median", unit="ms", better="lower", order=15)
def update_accepted_p50_ms(trial: Trial) -> float | None:
    """Median over changes of the time from sending the update to the primary's positive answer."""
    return _of(trial, "accept_ns", "p50")


@metric(title="changes that did not arrive", unit="%", better="lower", order=16)
def unseen_changes_percent(trial: Trial) -> float | None:
    """Share of all arrivals (changes × secondaries) that were not observed before dnsrig gave up."""
    summary = trial.record.instruments.get("propagation")
    wanted = summary["seen"] + summary["unseen"] if summary else 0
    return 100 * summary["unseen"] / wanted if summary and wanted else None


@metric(title="lateness of changes, longest", unit="ms", better="lower", order=89)
def change_lag_max_ms(trial: Trial) -> float | None:
    """The longest time from the moment at which a change was due until it was sent. The instrument causes it, or a
    primary that had not yet answered the previous change of the same zone."""
    return _of(trial, "lag_ns", "max")


@metric(title="resolution of propagation, median", unit="ms", better="lower", order=90)
def propagation_resolution_p50_ms(trial: Trial) -> float | None:
    """Median over arrivals of the resolution of their time: from sending the last poll that did not find the change to
    the answer that showed it."""
    return _of(trial, "resolution_ns", "p50")


@metric(title="resolution of propagation, worst", unit="ms", better="lower", order=91)
def propagation_resolution_max_ms(trial: Trial) -> float | None:
    """Largest resolution of an arrival's time, as in `propagation_resolution_p50_ms`."""
    return _of(trial, "resolution_ns", "max")
