"""The path between the server under test and its primaries, as it was measured before the trial."""

from __future__ import annotations

from dnsrig.analysis.read import Trial


def rtt_s(trial: Trial) -> float | None:
    """The median round trip between the subject and a primary, the longest where there are several; None where no check says it.

    For a primary under test it is that to whoever takes zones of it.
    """
    spec = trial.record.spec
    others = set(spec.primaries) or {name for name in spec.hosts if name not in (spec.subject, "observer")}
    found = [
        float(check["rtt_median_us"]) / 1e6
        for check in trial.record.link_checks
        if check.get("rtt_median_us") is not None and _joins(check, spec.subject, others)
    ]
    return max(found, default=None)


def _joins(check: dict[str, object], subject: str, others: set[str]) -> bool:
    ends = {check.get("from"), check.get("to")}
    return subject in ends and bool(ends & others)
