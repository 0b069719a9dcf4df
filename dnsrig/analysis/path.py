"""The path between the server under test and its primaries: as it was measured before the trial, and as it was asked for."""

from __future__ import annotations

from dnsrig.analysis.read import Trial


def rtt_s(trial: Trial) -> float | None:
    """The median round trip between the subject and a primary, the longest where there are several; None where no check says it.

    For a primary under test it is that to whoever takes zones of it.
    """
    far = _far(trial)
    found = [
        float(check["rtt_median_us"]) / 1e6
        for check in trial.record.link_checks
        if check.get("rtt_median_us") is not None and {check.get("from"), check.get("to")} in far
    ]
    return max(found, default=None)


def jitter_s(trial: Trial) -> float:
    """Of the delay, each way, ± so much, where the path keeps packets in their order; 0 where it has none or lets them overtake."""
    far = _far(trial)
    ways = [
        getattr(link, way, None)
        for link in trial.record.spec.links
        if set(link.ends) in far
        for way in ("there", "back")
    ]
    return max((way.jitter_ms / 1e3 for way in ways if way is not None and way.ordered), default=0.0)


def _far(trial: Trial) -> list[set[str]]:
    """The pairs of hosts between which zones go."""
    spec = trial.record.spec
    others = spec.primaries or [name for name in spec.hosts if name not in (spec.subject, "observer")]
    return [{spec.subject, other} for other in others]
