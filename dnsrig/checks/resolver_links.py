"""Check of a resolver's links: whether a full link, and not the resolver, limited the result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from dnsrig.checks import Seen, cannot_tell, check
from dnsrig.metrics.link import rows_during
from dnsrig.rundir import OBSERVER, LinkSpec, PathSpec, Phase
from dnsrig.runs.during import Stretch, growth_in_each
from dnsrig.runs.trial import Trial

NOTHING_LOST = "nothing lost"
SECOND_NS = 1_000_000_000


@dataclass(frozen=True)
class Direction:
    """One direction of a link."""

    link: LinkSpec
    name: str
    """``forward`` or ``reverse``, as in the rows of `link`."""
    sender: str
    receiver: str
    path: PathSpec | None

    def __str__(self) -> str:
        return f"from {self.sender} to {self.receiver}"

    @property
    def rate_mbit(self) -> float | None:
        return self.path.rate_mbit if self.path else None


@check(title="load of the resolver's links", unit="% of the rate")
def links_kept_up(trial: Trial) -> Seen:
    """Whether a resolver's links to authorities and clients lost nothing and had spare capacity.

    Packets that a full link drops are repeated, and packets in its queue are late: then the link limits the result. For
    an emulated link, the busiest second of each direction is compared with its rate. An empty cache causes most queries
    at the start, so a mean over the trial would hide this. Up to 70 % of the rate, a packet waits for slightly more
    than two others on average (M/M/1: share / (1 - share)); above that the wait grows fast.

    The engine's `link` counts packets that found no room; without emulation the interfaces count them. netem does not
    report when it dropped a packet, so for netem only the rate is checked. Interfaces may drop the excess of a search
    for the capacity. The source of a flood may fill its own link.
    """
    phase, directions = trial.measure, list(_directions(trial))
    if phase is None or not directions:
        return cannot_tell("there is no link to a resolver")
    lost = [(each, _lost(trial, each)) for each in directions]
    if full := [f"{packets:,} packets found no room {each}" for each, packets in lost if packets]:
        return Seen(", ".join(full), asked=NOTHING_LOST)
    shares = [(each, _busiest_percent(trial, each, phase)) for each in directions if each.rate_mbit]
    if unknown := [each for each, value in (*lost, *shares) if value is None]:
        return cannot_tell(f"there are no samples of the link {unknown[0]}")
    if not shares:
        return Seen(NOTHING_LOST, asked=NOTHING_LOST)
    way, share = max(shares, key=lambda found: found[1] or 0.0)
    return Seen(
        share,
        most=70.0,
        why=f"this was the busiest second of the link with {way.rate_mbit:g} Mbit/s {way}: raise path.rate_mbit, or lower the load",
        series=(f"{way.receiver}/{trial.record.spec.interface(way.receiver, way.sender)}/rx_bytes",),
    )


def _directions(trial: Trial) -> Iterator[Direction]:
    """Both directions of the subject's links, except a flood's; only a flood comes from a host without a duty."""
    spec = trial.record.spec
    for link in spec.links:
        left, right = link.ends
        other = spec.hosts[right if left == trial.subject else left]
        is_load = bool(other.client_range) or other.asks or OBSERVER in link.ends
        is_flood = other.role is None and not is_load
        if trial.subject in link.ends and not is_flood:
            yield Direction(link, "forward", left, right, link.forward)
            yield Direction(link, "reverse", right, left, link.reverse)


def _lost(trial: Trial, way: Direction) -> int | None:
    """Packets that found no room during `measure`; None if not known."""
    if way.link.writes_rows:
        rows = rows_during(trial, way.link)
        return None if rows.is_empty() else int(rows.filter(pl.col("direction") == way.name)["overflowed"].sum())
    if way.link.emulated or trial.load.model == "ramp":
        return 0
    # Both ends may count the same dropped packet.
    ends = (way.sender, way.receiver, "tx_dropped"), (way.receiver, way.sender, "rx_dropped")
    spec = trial.record.spec
    counted = [trial.growth(host, spec.interface(host, other), name) for host, other, name in ends]
    return int(max(known)) if (known := [count for count in counted if count is not None]) else None


def _busiest_percent(trial: Trial, way: Direction, phase: Phase) -> float | None:
    """Busiest second in percent of the rate, from the IP bytes that arrived in each whole second of `measure`."""
    assert way.rate_mbit is not None
    seconds = _seconds(phase)
    source = trial.record.spec.interface(way.receiver, way.sender)
    found = growth_in_each(trial, (way.receiver, source, "rx_bytes"), seconds)
    packets = growth_in_each(trial, (way.receiver, source, "rx_packets"), seconds)
    if not found or not packets:
        return None
    bits_per_s = (
        8e9 * (nbytes - way.link.header_bytes * count) / (end - start)
        for nbytes, count, (start, end) in zip(found, packets, seconds)
    )
    return 100 * max(bits_per_s) / (way.rate_mbit * 1e6)


def _seconds(phase: Phase) -> list[Stretch]:
    """The whole seconds of a phase, or a shorter phase as a whole."""
    start_ns, end_ns = phase.start.monotonic_ns, phase.end.monotonic_ns
    whole = range(start_ns, end_ns - SECOND_NS + 1, SECOND_NS)
    return [(at, at + SECOND_NS) for at in whole] or [(start_ns, end_ns)]
