"""TCP segments were larger than the path allows.

A connection negotiates its segment size from the MTU of the two interfaces (RFC 9293, 3.7.1), not of the path between
them. If a part of the path has a smaller MTU (a tunnel, PPPoE), the first large segments are dropped. If ICMP reports
this, the sender makes the next segments smaller, and has lost a round trip and a part of its window (RFC 1191, 8201).
If a firewall drops the ICMP messages, the sender repeats the same segments: small zones arrive, large ones hang.

How it is detected: the emulated link dropped packets because they were larger than its path MTU, not counting the
packets of the self-test. If the link does not count them: sockets with segments larger than the path allows. Sockets
are listed every 0.2 s. Over a shorter path a sender may have reduced its segments by then, so small segments prove
nothing unless one of the hosts has a lower MSS.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import polars as pl

from dnsrig.rundir import Family, LinkSpec, PathSpec
from dnsrig.runs import sockets
from dnsrig.runs.trial import Trial
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

ORDER = 41
GROUP = "the network and TCP"
OUTCOMES = JUDGED
TITLE = "segments larger than the path's MTU"
SOURCE = "S4: M. Prause: MTU and MSS (2015); RFC 9293, 3.7.1; RFC 2923, 2.1, black holes; RFC 4821"
WEIGHT = "explains"
HEADERS_BYTES: Mapping[Family, int] = {"ipv4": 20 + 20, "ipv6": 40 + 20}
"""Size of the IP and TCP headers, without options."""
Direction = Literal["forward", "reverse"]


@dataclass(frozen=True)
class Narrow:
    """A direction of a link whose path MTU is smaller than its interface MTU, with observations."""

    sender: str
    receiver: str
    interface_bytes: int
    path: PathSpec
    path_bytes: int
    dropped: int | None
    """Packets that were too large; None: not counted."""
    mss_bytes: int | None
    """The largest segments of any connection in this direction; None: no connection was listed."""
    resent: int
    headers_bytes: int
    agreed_bytes: int | None
    """The largest MSS that routes or clamping allow the hosts to negotiate; None: no such limit."""

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
    if trial.measure is None:
        return None
    narrow = list(_narrow(trial))
    if not narrow:
        return None
    if met := [one for one in narrow if one.is_met]:
        return _found(trial, max(met, key=lambda one: one.dropped or 0))
    if any(one.is_met is None for one in narrow):
        return cannot_tell(
            "The path MTU is smaller than the interface MTU, but packets that were too large were not counted, and no listed socket had such segments."
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
    """Number of packets that were too large since the first phase began; the self-test before it sends such packets
    itself."""
    rows = trial.links().get(link.name)
    if rows is None or rows.is_empty():
        return None
    begin_ns = min(phase.start.monotonic_ns for phase in trial.record.phases)
    rows = rows.filter((pl.col("direction") == direction) & (pl.col("time_ns") > begin_ns))
    return int(rows["too_big"].sum())


def _sent(trial: Trial, sender: str, receiver: str) -> tuple[int | None, int]:
    """The largest segments of the connections from one host to another, and the number of segments sent again on
    them."""
    rows = trial.sockets.filter(pl.col("host") == sender)
    there = [remote for remote in rows["remote"].unique() if sockets.host_of(trial, remote) == receiver]
    rows = rows.filter(pl.col("remote").is_in(there))
    if rows.is_empty():
        return None, 0
    each = rows.group_by("local", "remote").agg(pl.col("mss_bytes", "retransmissions").max())
    return int(each["mss_bytes"].max() or 0), int(each["retransmissions"].sum())  # type: ignore[arg-type]


def _found(trial: Trial, met: Narrow) -> Conclusion:
    told = (
        f"ICMP reported this to the {met.sender}, which costs a round trip and a part of its window on each new path"
        if met.path.icmp
        else f"ICMP is blocked, so the {met.sender} does not learn this and sends the same segments again"
    )
    packets = "Packets" if met.dropped is None else f"{met.dropped:,} packets"
    resent = f" ({met.resent:,} segments were sent again)" if met.resent else ""
    if met.mss_bytes is not None and met.mss_bytes > met.fits_bytes:
        resent = f" (segments had up to {met.mss_bytes:,} bytes, but only {met.fits_bytes:,} fit; {met.resent:,} were sent again)"
    return Conclusion(
        "found",
        summary=f"The path from {met.sender} to {met.receiver} has an MTU of {met.path_bytes:,} bytes, the interfaces {met.interface_bytes:,}. {packets} were "
        f"too large and were dropped{resent}. {told}.",
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
        remedy=f"Let both ends negotiate smaller segments: hosts.{met.receiver}.advmss_bytes = {met.fits_bytes}, or clamp the MSS on the path "
        f"(hosts.{met.receiver}.mss_clamp_bytes), or lower the MTU of the interfaces. Without ICMP, net.ipv4.tcp_mtu_probing = 1 on the "
        f"{met.sender} finds the right size (RFC 4821), after several retransmissions.",
    )
