"""The connection that carried most of a trial, as both its ends saw it. Pure functions over `Trial.sockets`."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from dnsrig.rundir import LinkSpec, PathSpec
from dnsrig.runs.trial import Trial


@dataclass(frozen=True)
class Flow:
    """A connection, from the end that sent more to the other; rows as in `Trial.sockets`, by time."""

    sender: str
    """Host names."""
    receiver: str
    """Empty where the address is no host's."""
    sent: pl.DataFrame
    """At the sender, during `measure`; never empty."""
    received: pl.DataFrame
    """At the receiver, at the same times; empty where its sockets were not listed."""

    @property
    def nbytes(self) -> int:
        """Acknowledged by the receiver, since the connection began."""
        return int(self.sent["acked_bytes"][-1])

    @property
    def congestion(self) -> str:
        """The congestion control of the sender, as the kernel reports it for its socket."""
        return str(self.sent["congestion"][-1])

    @property
    def round_trip_ms(self) -> float | None:
        """The shortest that the sender saw; None before it had seen one."""
        known = self.sent.filter(pl.col("min_rtt_us") > 0)["min_rtt_us"]
        return None if known.is_empty() else int(known[-1]) / 1e3


def largest(trial: Trial) -> Flow | None:
    """The connection on which most was acknowledged during `measure`; None where no socket was listed, or none sent
    anything.

    Of those over an emulated path where there is one: what a site does within itself, as a server that reads from the
    database beside it, says nothing of the path.
    """
    rows, phase = trial.sockets, trial.measure
    if phase is None or rows.is_empty():
        return None
    key = ["host", "local", "remote"]
    before = rows.filter(pl.col("time_ns") < phase.start.monotonic_ns)
    rows = rows.filter(pl.col("time_ns").is_between(phase.start.monotonic_ns, phase.end.monotonic_ns)).sort("time_ns")
    acked = pl.col("acked_bytes").cast(pl.Int64, strict=False).max()  # of damaged rows: null
    ends = rows.group_by(key).agg(acked.alias("bytes"))
    ends = ends.join(before.group_by(key).agg(acked.alias("before")), on=key, how="left")
    ends = ends.with_columns(pl.col("bytes") - pl.col("before").fill_null(0)).filter(pl.col("bytes") > 0)
    ends = ends.sort(["bytes", *key], descending=[True, False, False, False])
    paths = [set(link.ends) for link in trial.record.spec.links if link.emulated]
    found = (end for end in ends.iter_rows() if not paths or {end[0], host_of(trial, end[2])} in paths)
    host, local, remote, *_ = next(found, ("", "", ""))
    if not host:
        return None
    receiver = host_of(trial, remote)
    at_sender = (pl.col("host") == host) & (pl.col("local") == local) & (pl.col("remote") == remote)
    at_receiver = (pl.col("host") == receiver) & (pl.col("local") == remote) & (pl.col("remote") == local)
    return Flow(host, receiver, rows.filter(at_sender), rows.filter(at_receiver))


def host_of(trial: Trial, address: str) -> str:
    """The host that an ADDRESS:PORT belongs to; empty if it belongs to no host."""
    plain = address.rpartition(":")[0].strip("[]")
    for name, host in trial.record.spec.hosts.items():
        if plain in (host.address, *host.source_addresses):
            return name
    return ""


def sysctl_of(trial: Trial, host: str, name: str) -> str | None:
    """A sysctl of a host, as read back when it was made, or else as asked for; None where neither says."""
    read_back = trial.record.read_back.get("hosts", {}).get(host, {}).get("sysctls", {}).get(name)
    spec = trial.record.spec.hosts.get(host)
    value = read_back if read_back is not None else spec.sysctls.get(name) if spec else None
    return None if value is None else str(value).strip()


def agreed_mss(trial: Trial, sender: str, receiver: str) -> int | None:
    """The largest segments that ``sender`` may learn of from ``receiver``, where something lowers them: the receiver's
    routes, or what lowers SYNs at either."""
    ends = {name: host for name, host in trial.record.spec.hosts.items() if name in (sender, receiver)}
    asked = [host.advmss_bytes for name, host in ends.items() if name == receiver]
    asked += [host.mss_clamp_bytes for host in ends.values()]
    return min((nbytes for nbytes in asked if nbytes is not None), default=None)


def link_of(trial: Trial, flow: Flow) -> LinkSpec | None:
    """The link between the two ends of a connection."""
    ends = {flow.sender, flow.receiver}
    return next((link for link in trial.record.spec.links if set(link.ends) == ends), None)


def path_of(trial: Trial, flow: Flow) -> PathSpec | None:
    """What the path was asked to be in the direction in which a connection sent; None where it is not emulated."""
    link = link_of(trial, flow)
    if link is None:
        return None
    return link.forward if link.ends[0] == flow.sender else link.reverse


def in_flight_bytes(path: PathSpec, round_trip_ms: float) -> float | None:
    """Bandwidth × delay: what has to be under way to fill a path with this round trip; None where no rate was asked
    for."""
    return None if path.rate_mbit is None else path.rate_mbit * 1e6 / 8 * round_trip_ms / 1e3


def growth(rows: pl.DataFrame, counter: str) -> int:
    """By how much a counter of one socket grew over ``rows``; all of it if the connection began with them."""
    if rows.is_empty():
        return 0
    return int(rows[counter][-1]) - (int(rows[counter][0]) if rows.height > 1 else 0)
