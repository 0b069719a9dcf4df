"""TCP segments were larger than the path takes.

A connection agrees on its segments by the MTU of the two interfaces (RFC 9293, 3.7.1); what lies between them has no say. Where some part of the path
takes less (a tunnel, PPPoE), the first large segments are dropped. Told so by ICMP, the sender makes the following ones smaller, and
has lost a round trip and part of its window (RFC 1191). Where a firewall drops the ICMP, the same segments are sent again and
again: small zones arrive, large ones hang.

How it is told: packets that the emulated link dropped because they were larger than its path MTU, not counting those of the self-test; where the link does not count them, sockets whose
segments were larger than what fits. These are listed every 0.2 s, and over a shorter path a sender may have learnt its lesson by then: without a lower MSS
on either host small segments prove nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import polars as pl

from dnsrig.analysis import sockets
from dnsrig.analysis.read import Trial
from dnsrig.rundir import LinkSpec, PathSpec
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

ORDER = 41
TITLE = "segments larger than the path's MTU"
SOURCE = "S4: M. Prause: MTU and MSS (2015); RFC 9293, 3.7.1; RFC 2923, 2.1, black holes; RFC 4821"
HEADERS_OCTETS = 40
"""IPv4 and TCP, without options."""
Direction = Literal["there", "back"]


@dataclass(frozen=True)
class Narrow:
    """A direction of a link whose path takes less than its interfaces, and what was seen of it."""

    sender: str
    receiver: str
    interface_octets: int
    path: PathSpec
    path_octets: int
    dropped: int | None
    """Packets that were too large; None: not counted."""
    mss_octets: int | None
    """The largest segments of any connection that sent in this direction; None: none was listed."""
    resent: int
    agreed_octets: int | None
    """What the hosts were told to agree on at most, by their routes or on the way; None: nothing."""

    @property
    def fits_octets(self) -> int:
        return self.path_octets - HEADERS_OCTETS

    @property
    def is_met(self) -> bool | None:
        if self.dropped is not None:
            return self.dropped > 0
        if self.mss_octets is not None and self.mss_octets > self.fits_octets:
            return True
        lowered = self.agreed_octets is not None and self.agreed_octets <= self.fits_octets
        return False if lowered and self.mss_octets is not None else None


def after(trial: Trial) -> Conclusion | None:
    if trial.record.outcome not in JUDGED or trial.measure is None:
        return None
    narrow = list(_narrow(trial))
    if not narrow:
        return None
    if met := [one for one in narrow if one.is_met]:
        return _found(trial, max(met, key=lambda one: one.dropped or 0))
    if any(one.is_met is None for one in narrow):
        return cannot_tell(
            "The path takes less than its interfaces, but what was too large was not counted, and no socket was listed with segments of that size."
        )
    return CLEAR


def _narrow(trial: Trial) -> Iterator[Narrow]:
    for link in trial.record.spec.links:
        ways: tuple[tuple[Direction, PathSpec | None], ...] = (("there", link.there), ("back", link.back))
        for direction, path in ways:
            if path is None or path.mtu_octets is None or path.mtu_octets >= link.mtu_octets:
                continue
            sender, receiver = link.ends if direction == "there" else link.ends[::-1]
            dropped, (mss, resent) = _dropped(trial, link, direction), _sent(trial, sender, receiver)
            agreed = _agreed(trial, sender, receiver)
            yield Narrow(sender, receiver, link.mtu_octets, path, path.mtu_octets, dropped, mss, resent, agreed)


def _agreed(trial: Trial, sender: str, receiver: str) -> int | None:
    """The largest segments that ``sender`` may learn of from ``receiver``, where something lowers them."""
    hosts = trial.record.spec.hosts
    said = (hosts[receiver].advmss_octets, hosts[receiver].mss_clamp_octets, hosts[sender].mss_clamp_octets)
    return min((octets for octets in said if octets is not None), default=None)


def _dropped(trial: Trial, link: LinkSpec, direction: Direction) -> int | None:
    """Since the first phase began: before that the self-test sends packets that are too large itself."""
    rows = trial.links().get(link.name)
    if rows is None or rows.is_empty():
        return None
    begin_ns = min(phase.start.monotonic_ns for phase in trial.record.phases)
    rows = rows.filter((pl.col("direction") == direction) & (pl.col("time_ns") > begin_ns))
    return int(rows["too_big"].sum())


def _sent(trial: Trial, sender: str, receiver: str) -> tuple[int | None, int]:
    """The largest segments of the connections from one host to another, and how many were sent again on all of them."""
    rows = trial.sockets.filter(pl.col("host") == sender)
    there = [remote for remote in rows["remote"].unique() if sockets.host_of(trial, remote) == receiver]
    rows = rows.filter(pl.col("remote").is_in(there))
    if rows.is_empty():
        return None, 0
    each = rows.group_by("local", "remote").agg(pl.col("mss_octets", "retransmissions").max())
    return int(each["mss_octets"].max() or 0), int(each["retransmissions"].sum())  # type: ignore[arg-type]


def _found(trial: Trial, met: Narrow) -> Conclusion:
    told = (
        f"The {met.sender} was told so by ICMP, which costs a round trip and part of its window on each new path"
        if met.path.icmp
        else f"ICMP is blocked, so that the {met.sender} does not learn it and sends the same segments again"
    )
    packets = "Packets" if met.dropped is None else f"{met.dropped:,} packets"
    resent = f" ({met.resent:,} segments were sent again)" if met.resent else ""
    if met.mss_octets is not None and met.mss_octets > met.fits_octets:
        resent = (
            f" (segments of up to {met.mss_octets:,} octets where {met.fits_octets:,} fit; {met.resent:,} sent again)"
        )
    return Conclusion(
        "found",
        summary=f"The path from {met.sender} to {met.receiver} takes packets of {met.path_octets:,} octets, the interfaces {met.interface_octets:,}. {packets} were "
        f"larger and dropped{resent}. {told}.",
        evidence={
            "path_mtu_octets": met.path_octets,
            "interface_mtu_octets": met.interface_octets,
            "too_big_packets": met.dropped,
            "mss_max_octets": met.mss_octets,
            "mss_fits_octets": met.fits_octets,
            "retransmissions": met.resent,
            "icmp": met.path.icmp,
        },
        metrics=(trial.record.spec.main_metric, "transfer_time_s", "throughput_kbytes_per_s", "retransmissions"),
        remedy=f"Let both ends agree on smaller segments: hosts.{met.receiver}.advmss_octets = {met.fits_octets}, or clamp the MSS on the way "
        f"(hosts.{met.receiver}.mss_clamp_octets), or lower the MTU of the interfaces. Without ICMP, net.ipv4.tcp_mtu_probing = 1 on the "
        f"{met.sender} finds the size out (RFC 4821), after several retransmissions.",
    )
