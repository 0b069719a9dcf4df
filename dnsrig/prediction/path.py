"""The path between the server under test and its primaries: as it was asked for, or else as it was measured before the
trial."""

from __future__ import annotations

from dnsrig.prediction import jitter
from dnsrig.rundir import LinkSpec, PathSpec
from dnsrig.runs.trial import Trial

PACKETS_A_ZONE = 3.0
"""In each direction, about: it decides how busy a path is, and goes into the delay by its root alone."""


def rtt_s(trial: Trial, packets_per_s: float = 0.0) -> float | None:
    """The round trip that ``packets_per_s`` meet each way between the subject and a primary, the longest where there
    are several.

    Of an emulated link what was asked for, which the self-test found to be so; of any other the median that was
    measured. None where nothing tells. For a primary under test it is that to whoever takes zones of it.
    """
    far = _far(trial)
    emulated = [link for link in trial.record.spec.links if link.emulated and set(link.ends) in far]
    if emulated:
        return max(
            _one_way_s(link.forward, packets_per_s) + _one_way_s(link.reverse, packets_per_s) for link in emulated
        )
    found = [
        float(check["rtt_median_us"]) / 1e6
        for check in trial.record.link_tests
        if check.get("rtt_median_us") is not None and {check.get("from"), check.get("to")} in far
    ]
    return max(found, default=None)


def jitter_s(trial: Trial) -> float:
    """Jitter of the delay, each way, where the path keeps packets in their order; 0 where it has none or lets them
    overtake."""
    return max((way.jitter_ms / 1e3 for way in _ways(trial) if way is not None and way.ordered), default=0.0)


def _ways(trial: Trial) -> list[PathSpec | None]:
    far = _far(trial)
    links: list[LinkSpec] = [link for link in trial.record.spec.links if set(link.ends) in far]
    return [way for link in links for way in (link.forward, link.reverse)]


def _one_way_s(way: PathSpec | None, packets_per_s: float) -> float:
    if way is None:
        return 0.0
    return jitter.delay_s(way.delay_ms / 1e3, way.jitter_ms / 1e3, packets_per_s, ordered=way.ordered)


def _far(trial: Trial) -> list[set[str]]:
    """The pairs of hosts between which zones go."""
    spec = trial.record.spec
    others = spec.primaries or [name for name in spec.hosts if name not in (spec.subject, *spec.instrument_hosts)]
    return [{spec.subject, other} for other in others]
