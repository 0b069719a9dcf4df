"""The socket buffers limited the throughput, not the path and not congestion control.

To fill a path, bandwidth × delay bytes must be in flight. The sender keeps all of them until they are acknowledged, and
the receiver must have room for them. Buffers begin with the second number of tcp_wmem and tcp_rmem, and the kernel lets
them grow up to the third. A path that needs more than the third number stays partly empty, whatever the algorithm. The
sender's buffer grows at once, with its congestion window. The receiver's buffer follows the amount that its application
read in the last round trip (tcp(7), tcp_moderate_rcvbuf). Over a long path with loss that takes tens of seconds; until
then the second number decides, however large the third is. If a server sets a buffer itself (SO_SNDBUF, SO_RCVBUF;
socket(7)), the buffer keeps that size: the kernel no longer lets it grow.

How it is detected: less than bandwidth × delay was in flight (if the rate is known), and the sender's kernel reports
that the receiver's window, or the room in the sender's own buffer, was the only limit for a large part of the time in
which the sender had something to send (TCP_INFO, tcp(7)). The kernel does not always notice the latter. So a buffer
also counts as full if most of its capacity is used, all of it is in flight, and the congestion window has room for
more. A receiving application that does not read closes the window too; then bytes wait at the receiver, which is not
this trap.

A resolver is not examined. Its TCP messages have at most 65,535 bytes each, with nothing between them that could fill a
path. By default a receive buffer begins with twice that size, and a send buffer grows with the congestion window.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from dnsrig.runs import sockets
from dnsrig.runs.sockets import Flow, growth
from dnsrig.runs.trial import Trial
from dnsrig.text import digits
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

ORDER = 42
GROUP = "the network and TCP"
OUTCOMES = JUDGED
TITLE = "socket buffers below bandwidth × delay"
SOURCE = "RFC 7323, 1.1; tcp(7), tcp_rmem and tcp_wmem; S4: M. Prause: network tuning (2015)"
WEIGHT = "explains"
SEND_SYSCTL, RECEIVE_SYSCTL = "net.ipv4.tcp_wmem", "net.ipv4.tcp_rmem"
LEAST_SHARE = 0.2
"""Share of the time in which the sender had something to send above which buffers decide the throughput."""
LONG_MS = 10.0
"""Shortest round trip that is examined. On a short path a full buffer shows only that the application writes faster
than the other one reads."""
FULL_SHARE = 0.5
"""Share of the largest send buffer above which it is full: the kernel also counts its own overhead."""
WINDOW_ROOM = 1.1
"""Least ratio of the congestion window to the bytes in flight at which the window is not the limit."""
GROWN_SHARE = 0.25
"""Share of the largest receive buffer in flight above which the buffer had grown to its full size. About half of it is
for the bytes themselves (ip-sysctl, tcp_adv_win_scale = 1), and a listing every 0.2 s rarely catches the peak."""
LISTINGS_MIN = 5
"""Least number of listings, one second: enough for a buffer to grow if the kernel controls it."""
UNREAD_SHARE = 0.25
"""Share of the bytes in flight above which unread bytes show that the receiver itself is slow."""


@dataclass(frozen=True)
class Bound:
    """The sender's limits, as shares of the time in which it had something to send."""

    busy_s: float
    by_receiver: float
    by_sender: float
    in_flight_bytes: float
    """Largest number of bytes in flight at a listing."""
    unread_bytes: float
    """Median number of unread bytes at the receiver."""

    @property
    def reader_is_slow(self) -> bool:
        return self.by_receiver > self.by_sender and self.unread_bytes > UNREAD_SHARE * self.in_flight_bytes


def after(trial: Trial) -> Conclusion | None:
    spec = trial.record.spec
    if spec.hosts[spec.subject].role == "resolver":
        return None
    flow = sockets.largest(trial)
    if flow is None or flow.round_trip_ms is None or flow.round_trip_ms < LONG_MS:
        return None
    sizes = buffer_bytes(trial, flow.sender, SEND_SYSCTL)
    bound = bound_of(flow, sizes[2] if sizes else None)
    if bound.busy_s <= 0:
        return cannot_tell("The kernel does not count why the sender had to wait (Linux 4.10 and later do).")
    path = sockets.path_of(trial, flow)
    wanted = None if path is None else sockets.in_flight_bytes(path, flow.round_trip_ms)
    if max(bound.by_receiver, bound.by_sender) < LEAST_SHARE or bound.reader_is_slow:
        return CLEAR
    if wanted is not None and bound.in_flight_bytes >= wanted:
        return CLEAR  # more bytes would only wait in a queue
    return _found(trial, flow, bound, flow.round_trip_ms, wanted)


def buffer_bytes(trial: Trial, host: str, sysctl: str) -> tuple[int, int, int] | None:
    """The three numbers of tcp_rmem or tcp_wmem of a host: least, first, largest; None if they are not known."""
    words = (sockets.sysctl_of(trial, host, sysctl) or "").split()
    if len(words) != 3 or not all(word.isdecimal() for word in words):
        return None
    least, first, largest = map(int, words)
    return least, first, largest


def bound_of(flow: Flow, buffer_bytes: int | None = None) -> Bound:
    """``buffer_bytes``: the largest send buffer, if known."""
    busy_us = growth(flow.sent, "busy_us")
    under_way = (pl.col("unacked").cast(pl.Int64) * pl.col("mss_bytes")).alias("bytes")
    unread = flow.received["receive_queue_bytes"].median()
    return Bound(
        busy_s=busy_us / 1e6,
        by_receiver=growth(flow.sent, "receive_window_limited_us") / max(1, busy_us),
        by_sender=max(growth(flow.sent, "send_buffer_limited_us") / max(1, busy_us), _full_share(flow, buffer_bytes)),
        in_flight_bytes=float(flow.sent.select(under_way)["bytes"].max() or 0),  # type: ignore[arg-type]
        unread_bytes=float(unread) if isinstance(unread, int | float) else 0.0,
    )


def _full_share(flow: Flow, buffer_bytes: int | None) -> float:
    """Share of the listings with something to send in which a full send buffer was the only limit."""
    written = pl.col("send_queue_bytes").cast(pl.Int64)
    busy = flow.sent.filter(written > 0)
    if buffer_bytes is None or busy.is_empty():
        return 0.0
    # Bytes that are written but not in flight are fewer than one segment plus the one that is being filled.
    all_under_way = written <= (pl.col("unacked").cast(pl.Int64) + 2) * pl.col("mss_bytes")
    window_has_room = pl.col("cwnd") >= WINDOW_ROOM * pl.col("unacked")
    full = busy.filter(all_under_way & window_has_room & (written >= FULL_SHARE * buffer_bytes))
    return full.height / busy.height


def _found(trial: Trial, flow: Flow, bound: Bound, round_trip_ms: float, wanted: float | None) -> Conclusion:
    """``wanted``: bandwidth × delay in bytes."""
    receiver_binds = bound.by_receiver >= bound.by_sender
    rows = flow.received["receive_buffer_bytes"] if receiver_binds else flow.sent["send_buffer_bytes"]
    what = f"the window of the {flow.receiver}" if receiver_binds else f"the send buffer of the {flow.sender}"
    beside = "" if wanted is None else f", while the path has room for {digits(wanted / 1e3)} kB"
    host, sysctl = (flow.receiver, RECEIVE_SYSCTL) if receiver_binds else (flow.sender, SEND_SYSCTL)
    sizes = buffer_bytes(trial, host, sysctl)
    own = set_by_server(rows, sizes)
    still_small = receiver_binds and sizes is not None and bound.in_flight_bytes < GROWN_SHARE * sizes[2]
    return Conclusion(
        "found",
        summary=f"For {max(bound.by_receiver, bound.by_sender):.0%} of the time in which the {flow.sender} had something to send, only {what} limited "
        f"it: at most {digits(bound.in_flight_bytes / 1e3)} kB were in flight over {digits(round_trip_ms)} ms{beside}.",
        evidence={
            "limited_by_receive_window_percent": round(100 * bound.by_receiver, 1),
            "limited_by_send_buffer_percent": round(100 * bound.by_sender, 1),
            "in_flight_max_bytes": bound.in_flight_bytes,
            "bandwidth_delay_bytes": None if wanted is None else round(wanted),
            "unread_median_bytes": bound.unread_bytes,
            "buffer_first_bytes": sizes[1] if sizes else None,
            "buffer_largest_bytes": sizes[2] if sizes else None,
            "buffer_set_bytes": own,
            "round_trip_ms": round(round_trip_ms, 3),
        },
        metrics=(trial.record.spec.main_metric, "throughput_kbytes_per_s", "transfer_time_s", "cwnd_segments"),
        remedy=_remedy(host, sysctl, sizes if still_small else None, wanted)
        if own is None
        else _give_back(host, sysctl, own),
    )


def set_by_server(nbytes: pl.Series, sizes: tuple[int, int, int] | None) -> int | None:
    """The size of a buffer, from its sizes at each listing, if the server set it; None if the kernel let it grow, or if
    it is not known.

    A buffer that the kernel controls does not keep its size while it is the limit, unless it has its first or its
    largest size.
    """
    known = nbytes.filter(nbytes > 0)
    if sizes is None or known.len() < LISTINGS_MIN or known.n_unique() != 1:
        return None
    size = int(known[0])
    return size if size < sizes[2] and size != sizes[1] else None


def _give_back(host: str, sysctl: str, own: int) -> str:
    return (
        f"The server on host {host} set this buffer to {own:,} bytes itself, so the kernel does not let it grow: check whether it has a setting for that. "
        f"A server that only raises small buffers leaves this one to the kernel if the second number of {sysctl} "
        f'is larger (hosts.{host}.sysctls."{sysctl}" = "4096 {own} …").'
    )


def _remedy(host: str, sysctl: str, still_small: tuple[int, int, int] | None, wanted: float | None) -> str:
    """``still_small``: the sizes of a buffer that had not grown to its full size."""
    where = f'of {sysctl} on the {host} to twice bandwidth × delay (hosts.{host}.sysctls."{sysctl}")'
    own = "check that the server does not set a size of its own"
    if still_small is None:
        return f"Raise the third number {where}, and {own}."
    _, first, largest = still_small
    if wanted is not None and largest < 2 * wanted:
        return f"Raise the second and the third number {where}, and {own}."
    return (
        f"Raise the second number {where}: the buffer begins with {first:,} bytes and had grown little when it was the limit; the third number, {largest:,}, "
        f"was not the limit. And {own}."
    )
