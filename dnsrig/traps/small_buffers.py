"""The buffers of the sockets bound the throughput, not the path and not congestion control.

To fill a path, bandwidth × delay must be under way, and all of it is kept by the sender until it is acknowledged and
has room at the receiver. Buffers begin with the second number of tcp_wmem and tcp_rmem and grow by themselves up to the
third; a path that is longer or wider than the third allows for stays half empty, whatever the algorithm. The sender's
grows with its congestion window, at once. The receiver's follows what its application read in the last round trip
(tcp(7), tcp_moderate_rcvbuf): over a long path with loss that takes tens of seconds, and until then it is the second
number that decides, however large the third is. A server that sets a buffer itself (SO_SNDBUF, SO_RCVBUF; socket(7))
has just that: the kernel lets it grow no more.

How it is told: less than bandwidth × delay was under way, where the rate is known; and the kernel of the sender counts
the time in which it had something to send, and of it the time in which nothing but the window of the receiver, or the
room in its own buffer, held it back (TCP_INFO, tcp(7)). It does not always see the second: so a buffer also counts as
full where most of what it may hold is written, all of it is under way, and the congestion window has room for more. A
receiving application that does not read closes the window too: then bytes wait at the receiver, and that is another
story.

A resolver is not judged. What it asks and answers over TCP is messages of at most 65,535 bytes, with nothing between
them to fill a path with; by default a receive buffer begins with twice as much, and a send buffer grows with the
congestion window.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from dnsrig.analysis import sockets
from dnsrig.analysis.read import Trial
from dnsrig.analysis.sockets import Flow, growth
from dnsrig.text import digits
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

ORDER = 42
TITLE = "socket buffers below bandwidth × delay"
SOURCE = "RFC 7323, 1.1; tcp(7), tcp_rmem and tcp_wmem; S4: M. Prause: network tuning (2015)"
WEIGHT = "explains"
SEND_SYSCTL, RECEIVE_SYSCTL = "net.ipv4.tcp_wmem", "net.ipv4.tcp_rmem"
LEAST_SHARE = 0.2
"""Of the time in which the sender had something to send: from here on buffers decide."""
LONG_MS = 10.0
"""Round trips from here on; on a short path a full buffer says only that the application writes faster than the other
reads."""
FULL_SHARE = 0.5
"""Of the largest send buffer: with so much written it is full, for the kernel counts what it needs beside the bytes."""
WINDOW_ROOM = 1.1
"""So many times what is under way is the congestion window, and it is not the window that holds back."""
GROWN_SHARE = 0.25
"""Of the largest receive buffer: where so much was under way, the buffer had grown to its end. About half of it is for
the bytes themselves (ip-sysctl, tcp_adv_win_scale = 1), and a socket that is listed every 0.2 s is seldom seen at its
fullest."""
LISTINGS_MIN = 5
"""A second of them: time for a buffer to grow, were it the kernel's."""
UNREAD_SHARE = 0.25
"""Of what is under way: a receiver with so much waiting to be read is slow itself."""


@dataclass(frozen=True)
class Bound:
    """What held a sender back, as shares of the time in which it had something to send."""

    busy_s: float
    by_receiver: float
    by_sender: float
    in_flight_bytes: float
    """Most that was under way at a listing."""
    unread_bytes: float
    """Median of what waited at the receiver."""

    @property
    def reader_is_slow(self) -> bool:
        return self.by_receiver > self.by_sender and self.unread_bytes > UNREAD_SHARE * self.in_flight_bytes


def after(trial: Trial) -> Conclusion | None:
    spec = trial.record.spec
    if trial.record.outcome not in JUDGED or spec.hosts[spec.subject].role == "resolver":
        return None
    flow = sockets.largest(trial)
    if flow is None or flow.round_trip_ms is None or flow.round_trip_ms < LONG_MS:
        return None
    sizes = buffer_bytes(trial, flow.sender, SEND_SYSCTL)
    bound = bound_of(flow, sizes[2] if sizes else None)
    if bound.busy_s <= 0:
        return cannot_tell("The kernel does not count what held the sender back (Linux 4.10 and later do).")
    path = sockets.path_of(trial, flow)
    wanted = None if path is None else sockets.in_flight_bytes(path, flow.round_trip_ms)
    if max(bound.by_receiver, bound.by_sender) < LEAST_SHARE or bound.reader_is_slow:
        return CLEAR
    if wanted is not None and bound.in_flight_bytes >= wanted:
        return CLEAR  # more would only wait in a queue
    return _found(trial, flow, bound, flow.round_trip_ms, wanted)


def buffer_bytes(trial: Trial, host: str, sysctl: str) -> tuple[int, int, int] | None:
    """The three numbers of tcp_rmem or tcp_wmem of a host: least, first, largest; None where they are not known."""
    words = (sockets.sysctl_of(trial, host, sysctl) or "").split()
    if len(words) != 3 or not all(word.isdecimal() for word in words):
        return None
    least, first, largest = map(int, words)
    return least, first, largest


def bound_of(flow: Flow, buffer_bytes: int | None = None) -> Bound:
    """``buffer_bytes``: the largest send buffer, where it is known."""
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
    """Of the listings with something to send, those in which a full send buffer alone held the sender back."""
    written = pl.col("send_queue_bytes").cast(pl.Int64)
    busy = flow.sent.filter(written > 0)
    if buffer_bytes is None or busy.is_empty():
        return 0.0
    # What is written and not under way is less than a segment and the one that is being filled.
    all_under_way = written <= (pl.col("unacked").cast(pl.Int64) + 2) * pl.col("mss_bytes")
    window_has_room = pl.col("cwnd") >= WINDOW_ROOM * pl.col("unacked")
    full = busy.filter(all_under_way & window_has_room & (written >= FULL_SHARE * buffer_bytes))
    return full.height / busy.height


def _found(trial: Trial, flow: Flow, bound: Bound, round_trip_ms: float, wanted: float | None) -> Conclusion:
    """``wanted``: bandwidth × delay in bytes."""
    receiver_binds = bound.by_receiver >= bound.by_sender
    rows = flow.received["receive_buffer_bytes"] if receiver_binds else flow.sent["send_buffer_bytes"]
    what = f"the window of the {flow.receiver}" if receiver_binds else f"the send buffer of the {flow.sender}"
    beside = "" if wanted is None else f", where the path has room for {digits(wanted / 1e3)} kB"
    host, sysctl = (flow.receiver, RECEIVE_SYSCTL) if receiver_binds else (flow.sender, SEND_SYSCTL)
    sizes = buffer_bytes(trial, host, sysctl)
    own = set_by_server(rows, sizes)
    still_small = receiver_binds and sizes is not None and bound.in_flight_bytes < GROWN_SHARE * sizes[2]
    return Conclusion(
        "found",
        summary=f"For {max(bound.by_receiver, bound.by_sender):.0%} of the time in which the {flow.sender} had something to send, only {what} held "
        f"it back: at most {digits(bound.in_flight_bytes / 1e3)} kB were under way over {digits(round_trip_ms)} ms{beside}.",
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
    """The size of a buffer, from what it was at each listing, if the server set it; None if the kernel let it grow, or
    it is not known.

    One that the kernel sees to is not the same throughout while it binds, unless it is as in the beginning or has
    reached the largest.
    """
    known = nbytes.filter(nbytes > 0)
    if sizes is None or known.len() < LISTINGS_MIN or known.n_unique() != 1:
        return None
    size = int(known[0])
    return size if size < sizes[2] and size != sizes[1] else None


def _give_back(host: str, sysctl: str, own: int) -> str:
    return (
        f"The server on host {host} set this buffer to {own:,} bytes itself, so the kernel does not let it grow: see whether it has a setting for that. "
        f"One that raises a default which it takes for too small leaves the buffer to the kernel as soon as the second number of {sysctl} "
        f'is larger than that (hosts.{host}.sysctls."{sysctl}" = "4096 {own} …").'
    )


def _remedy(host: str, sysctl: str, still_small: tuple[int, int, int] | None, wanted: float | None) -> str:
    """``still_small``: the sizes of a buffer that had not grown to its end."""
    where = f'of {sysctl} on the {host} to twice bandwidth × delay (hosts.{host}.sysctls."{sysctl}")'
    own = "see that the server does not set a buffer of its own"
    if still_small is None:
        return f"Raise the third number {where}, and {own}."
    _, first, largest = still_small
    if wanted is not None and largest < 2 * wanted:
        return f"Raise the second and the third number {where}, and {own}."
    return (
        f"Raise the second number {where}: the buffer begins with {first:,} bytes and had not grown far when it bound; the third number, {largest:,}, "
        f"was not what bound. And {own}."
    )
