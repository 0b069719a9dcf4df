"""A scenario: the number of zones, the path, the policy, and the number of sites."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dnsrig.errors import UsageError
from dnsrig.prediction import buffers, jitter, ports, primaries, round_trips, volume
from dnsrig.prediction.congestion import ALGORITHMS
from dnsrig.prediction.round_trips import POLICIES
from dnsrig.rundir import ServerLimit
from dnsrig.servers.behaviour import Policy, Soa, Transport
from dnsrig.text import digits

MOST = 10**12
"""Largest number of zones, records, bytes, workers, connections and sites."""
RTT_MOST_S = 3600.0
WINDOW = 100
"""Zones asked for at once on a connection, unless stated otherwise: as `dnsrig transfer` does it."""


@dataclass(frozen=True)
class Path:
    """The far path. Loss is of packets in the direction of the data; jitter is each way's, uniform about half the round
    trip."""

    rtt_s: float = 0.0
    jitter_s: float = 0.0
    ordered: bool = True
    loss: float = 0.0
    rate_bytes_per_s: float | None = None
    """None: nothing is known of its rate."""

    def __post_init__(self) -> None:
        if not 0 <= self.loss < 1:
            raise UsageError(f"a loss of {digits(self.loss, 4)}", hint="from 0 % to less than 100 %")
        if self.rtt_s > RTT_MOST_S:
            raise UsageError(f"round trips of {self.rtt_s:g} s", hint="at most an hour")
        if self.rtt_s < 0 or not 0 <= self.jitter_s <= self.rtt_s / 2:
            raise UsageError(
                f"round trips of {self.rtt_s:g} s with a jitter of {self.jitter_s:g} s each way",
                hint="jitter is at most the one-way delay, half of the round trip",
            )
        if self.rate_bytes_per_s is not None and self.rate_bytes_per_s <= 0:
            raise UsageError("a path that carries nothing", hint="a rate above 0, e.g. 20mbit")

    def round_trip_s(self, packets_per_s: float) -> float:
        """The round trip that a stream of that many packets a second meets."""
        return jitter.round_trip_s(self.rtt_s, self.jitter_s, packets_per_s, ordered=self.ordered)


@dataclass(frozen=True)
class Scenario:
    """A question to the model; see `combine.predict`."""

    zones: int
    records: float
    """Records of each zone."""
    path: Path
    policy: Policy
    workers: int
    """Transfers at once; when pipelined the zones asked for at once, on all connections together."""
    transport: Transport = "tcp"
    tsig: bool = False
    """Whether messages are signed."""
    soa: Soa = "none"
    connections: int = 1
    """When pipelined."""
    congestion: str = "cubic"
    """Congestion control of the sender: the primary, or the near database."""
    bytes_per_record: float = volume.BYTES_PER_RECORD
    secondary: str = "a secondary"
    policies: frozenset[Policy] | None = None
    """Policies that this secondary can have; None: any, because no server is named."""
    workers_setting: str = "here: --workers"
    time_wait: bool = True
    """Whether a connection a zone leaves a port in TIME_WAIT on the secondary."""
    measured_round_trips: float | None = None
    """Round trips of a zone, instead of those that follow from the policy."""
    round_trips_factor: float = round_trips.FACTOR
    """By which the time that they take may be wrong."""
    start_s: float = 0.0
    zone_s: float | None = None
    """The secondary's own work, beside its start; None: not known."""
    record_s: float | None = None
    work_source: str = ""
    work_factor: float = 1.0
    limits: tuple[ServerLimit, ...] = ()
    ports: int = ports.PORTS
    window_bytes: float = buffers.WINDOW_BYTES
    sites: int = 1
    uplink_bytes_per_s: float | None = None
    """Uplink of the primary; None: it does not limit."""
    primary: str | None = None
    """Which server it is; None: its work is not counted."""
    primary_zone_s: float | None = None
    """The primary's CPU time for a zone as measured, in the place of what is known of that server."""

    def __post_init__(self) -> None:
        for name in ("zones", "workers", "connections", "sites", "ports"):
            if not 1 <= getattr(self, name) <= MOST:
                raise UsageError(f"{name} = {getattr(self, name)}", hint="a whole number from 1 to 10^12")
        for name in ("records", "bytes_per_record", "window_bytes"):
            if not 0 < getattr(self, name) <= MOST:
                raise UsageError(
                    f"{name.replace('_', ' ')}: {getattr(self, name):g}", hint="a number above 0, at most 10^12"
                )
        if self.uplink_bytes_per_s is not None and self.uplink_bytes_per_s <= 0:
            raise UsageError("an uplink that carries nothing", hint="a rate above 0, e.g. 1gbit")
        if self.policy not in POLICIES:
            raise UsageError(f"there is no policy {self.policy!r}", hint=f"one of {', '.join(POLICIES)}")
        if self.primary is not None and self.primary not in primaries.known():
            raise UsageError(
                f"nothing is known of {self.primary!r} as a primary", hint=f"one of {', '.join(primaries.known())}"
            )
        if self.congestion not in ALGORITHMS:
            raise UsageError(
                f"no law for congestion control {self.congestion!r}", hint=f"one of {', '.join(ALGORITHMS)}"
            )

    def can(self, policy: Policy) -> bool:
        """Whether this secondary can have it, with other settings perhaps."""
        return self.policies is None or policy in self.policies

    @property
    def carried_by(self) -> str:
        """The transport as experiments name it."""
        return f"{self.transport}+tsig" if self.tsig else self.transport

    @property
    def nbytes(self) -> float:
        """Bytes of DNS messages, or what a database sends in their place, to one site."""
        carried = volume.bytes_of(self.zones, self.records, self.bytes_per_record)
        if self.tsig:
            carried += self.zones * volume.tsig_bytes(carried / self.zones)
        if self.policy in round_trips.CONNECTS:
            carried += self.zones * volume.CONNECTION_BYTES
        tls = self.transport == "xot"
        if self.policy == "replica":
            return carried * volume.REPLICA_FACTOR * (volume.REPLICA_TLS_FACTOR if tls else 1.0)
        return carried * (volume.TLS_FACTOR if tls else 1.0)

    @property
    def bytes_a_zone(self) -> float:
        return self.nbytes / self.zones

    @property
    def flows(self) -> int:
        """TCP connections that carry data at the same time."""
        if self.policy == "replica":
            return 1
        most = self.connections if self.policy == "pipelined" else self.workers
        return min(most, self.zones)

    @property
    def round_trips_a_zone(self) -> dict[str, float]:
        """What a worker waits for, by what it is for."""
        if self.measured_round_trips is not None:
            return {"as measured": self.measured_round_trips}
        found: dict[str, float] = {**round_trips.of_zone(self.policy, self.transport, self.soa)}
        rounds = self._slow_start_rounds() if self.policy in round_trips.CONNECTS else 0
        return found | ({round_trips.SLOW_START: rounds} if rounds else {})

    def _slow_start_rounds(self) -> int:
        path = self.path
        full = math.inf if path.rate_bytes_per_s is None else path.rate_bytes_per_s * path.rtt_s
        return round_trips.slow_start_rounds(self.bytes_a_zone, min(full, self.window_bytes))
