"""TCP segments were larger than the path takes.

A connection agrees on its segments by the MTU of the two interfaces (RFC 9293, 3.7.1); what lies between them has no
say. Where some part of the path takes less (a tunnel, PPPoE), the first large segments are dropped. Told so by ICMP,
the sender makes the following ones smaller, and has lost a round trip and part of its window (RFC 1191, 8201). Where a
firewall drops the ICMP, the same segments are sent again and again: small zones arrive, large ones hang.

How it is told: packets that the emulated link dropped because they were larger than its path MTU, not counting those of
the self-test; where the link does not count them, sockets whose segments were larger than what fits. These are listed
every 0.2 s, and over a shorter path a sender may have learnt its lesson by then: without a lower MSS on either host
small segments prove nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import polars as pl

from dnsrig.analysis import sockets
from dnsrig.analysis.read import Trial
from dnsrig.rundir import Family, LinkSpec, PathSpec
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

ORDER = 41
TITLE = "segments larger than the path's MTU"
SOURCE = "S4: M. Prause: MTU and MSS (2015); RFC 9293, 3.7.1; RFC 2923, 2.1, black holes; RFC 4821"
WEIGHT = "explains"
HEADERS_BYTES: Mapping[Family, int] = {"ipv4": 20 + 20, "ipv6": 40 + 20}
"""Of IP and TCP, without options."""
Direction = Literal["forward", "reverse"]


@dataclass(frozen=True)
class Narrow:
    """A direction of a link whose path takes less than its interfaces, and what was seen of it."""

    sender: str
    receiver: str
    interface_bytes: int
    path: PathSpec
    path_bytes: int
    dropped: int | None
    """Packets that were too large; None: not counted."""
    mss_bytes: int | None
    """The largest segments of any connection that sent in this direction; None: none was listed."""
    resent: int
    headers_bytes: int
    agreed_bytes: int | None
    """What the hosts were told to agree on at most, by their routes or on the way; None: nothing."""

    @property
    def fits_bytes(self) -> int:
        return self.path_bytes - self.headers_bytes

    @property
    def is_met(self) -> bool | None:
        if self.dropped is not None:
            return self.dropped > 0
        if self.mss_bytes is not None and self.mss_bytes > self.fits_bytes:
            return True
        lowered = self.agreed_bytes is not None and self.agreed_bytes <= self.fits_bytes
        return False if lowered and self.mss_bytes is not None else None


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
        ways: tuple[tuple[Direction, PathSpec | None], ...] = (("forward", link.forward), ("reverse", link.reverse))
        for direction, path in ways:
            if path is None or path.mtu_bytes is None or path.mtu_bytes >= link.mtu_bytes:
                continue
            sender, receiver = link.ends if direction == "forward" else link.ends[::-1]
            dropped, (mss, resent) = _dropped(trial, link, direction), _sent(trial, sender, receiver)
            agreed = sockets.agreed_mss(trial, sender, receiver)
            headers = HEADERS_BYTES[trial.record.spec.family]
            yield Narrow(sender, receiver, link.mtu_bytes, path, path.mtu_bytes, dropped, mss, resent, headers, agreed)


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
    each = rows.group_by("local", "remote").agg(pl.col("mss_bytes", "retransmissions").max())
    return int(each["mss_bytes"].max() or 0), int(each["retransmissions"].sum())  # type: ignore[arg-type]


def _found(trial: Trial, met: Narrow) -> Conclusion:
    told = (
        f"The {met.sender} was told so by ICMP, which costs a round trip and part of its window on each new path"
        if met.path.icmp
        else f"ICMP is blocked, so that the {met.sender} does not learn it and sends the same segments again"
    )
    packets = "Packets" if met.dropped is None else f"{met.dropped:,} packets"
    resent = f" ({met.resent:,} segments were sent again)" if met.resent else ""
    if met.mss_bytes is not None and met.mss_bytes > met.fits_bytes:
        resent = f" (segments of up to {met.mss_bytes:,} bytes where {met.fits_bytes:,} fit; {met.resent:,} sent again)"
    return Conclusion(
        "found",
        summary=f"The path from {met.sender} to {met.receiver} takes packets of {met.path_bytes:,} bytes, the interfaces {met.interface_bytes:,}. {packets} were "
        f"larger and dropped{resent}. {told}.",
        evidence={
            "path_mtu_bytes": met.path_bytes,
            "interface_mtu_bytes": met.interface_bytes,
            "too_big_packets": met.dropped,
            "mss_max_bytes": met.mss_bytes,
            "mss_fits_bytes": met.fits_bytes,
            "retransmissions": met.resent,
            "icmp": met.path.icmp,
        },
        metrics=(trial.record.spec.main_metric, "transfer_time_s", "throughput_kbytes_per_s", "retransmissions"),
        remedy=f"Let both ends agree on smaller segments: hosts.{met.receiver}.advmss_bytes = {met.fits_bytes}, or clamp the MSS on the way "
        f"(hosts.{met.receiver}.mss_clamp_bytes), or lower the MTU of the interfaces. Without ICMP, net.ipv4.tcp_mtu_probing = 1 on the "
        f"{met.sender} finds the size out (RFC 4821), after several retransmissions.",
    )
