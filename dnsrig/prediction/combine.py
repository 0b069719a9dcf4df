"""All laws against one scenario: the slowest binds.

What all workers share (the link, CPUs, ports, a server's own rate) is held side by side and not added: while one worker
waits for it others are elsewhere. What one worker waits for is added: its round trips, and then the bytes of the zone
over its own connection, for it does nothing else meanwhile. These are the two bounds of operational analysis on a
closed system (Denning and Buzen, The Operational Analysis of Queueing Network Models, ACM Computing Surveys 10/3,
1978): work / the busiest station, and what each passes through / how many there are. Who pipelines waits for both at
the same time, so nothing is added there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from dnsrig.prediction import buffers, congestion, ports, primaries, round_trips, sharing, volume
from dnsrig.prediction.law import Limit
from dnsrig.prediction.scenario import Scenario
from dnsrig.prediction.secondaries import WORK_FACTOR
from dnsrig.servers.behaviour import Policy
from dnsrig.text import digits

LINK_RATE, ROUND_TRIPS = "link rate", "round trips"
ROUNDS = 12
"""Steps to the fixed point of round trip and packets a second: each halves the error at least."""
BETTER_POLICIES: Mapping[Policy, Mapping[Policy, str]] = {
    "one": {"reused": "connections that are kept", "pipelined": "pipelining"},
    "reused": {"pipelined": "pipelining"},
    "remote": {"replica": "a replica of the database near the secondary"},
}
"""Policies with fewer round trips."""
SHARE_TOLD = 0.01
"""Share of the slowest limit below which others are left out of alternatives."""
FILLS = "bbr"
MORE_WORKERS = 8
_SIZES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
WIDE_WINDOW = 10_000
"""Zones asked for at once by one that pipelines and does not wait."""


@dataclass(frozen=True)
class Prediction:
    """The result of the laws for a scenario; ``limits`` the slowest first. If no limit is known, the list is empty,
    and no time."""

    scenario: Scenario
    limits: tuple[Limit, ...]
    turn: tuple[Limit, ...] = ()
    """What a worker waits for one after the other: round trips, and what the bytes take beyond slow start's rounds;
    none where they overlap."""

    @property
    def binding(self) -> Limit:
        """The slowest; where what a worker waits for takes longer together, the larger part of that."""
        if self._turn_s <= self.limits[0].time_s:
            return self.limits[0]
        larger = max(self.turn, key=lambda part: part.time_s)
        return next(limit for limit in self.limits if limit.name == larger.name)

    @property
    def besides(self) -> Limit | None:
        """What comes on top of the limit that binds, if it is enough to be mentioned."""
        if self._turn_s <= self.limits[0].time_s:
            return None
        (smaller,) = (part for part in self.turn if part.name != self.binding.name)
        return smaller if smaller.time_s >= SHARE_TOLD * self.time_s else None

    @property
    def _turn_s(self) -> float:
        return sum(part.time_s for part in self.turn)

    @property
    def time_s(self) -> float:
        return max(self.limits[0].time_s, self._turn_s)

    @property
    def low_s(self) -> float:
        return max([sum(part.low_s for part in self.turn), *(limit.low_s for limit in self.limits)])

    @property
    def high_s(self) -> float:
        return max([sum(part.high_s for part in self.turn), *(limit.high_s for limit in self.limits)])

    @property
    def at_least(self) -> bool:
        """Whether nothing says how much longer it takes."""
        return self.binding.at_least

    @property
    def at_most(self) -> bool:
        """Whether nothing says how much less it takes, beside what other limits ask for."""
        return self.binding.at_most


@dataclass(frozen=True)
class Alternative:
    """A scenario with one thing changed."""

    change: str
    prediction: Prediction
    another_secondary: bool = False
    """Whether the secondary that was asked about cannot do it."""


def predict(scenario: Scenario) -> Prediction:
    """Every limit that is known of ``scenario``, the slowest first."""
    path, waiting = [*_path(scenario)], [*_waiting(scenario)]
    found = [*path, *waiting, *_secondary(scenario), *_primary(scenario)]
    return Prediction(scenario, tuple(sorted(found, key=lambda limit: -limit.time_s)), _turn(scenario, path, waiting))


def _turn(scenario: Scenario, path: list[Limit], waiting: list[Limit]) -> tuple[Limit, ...]:
    """See `Prediction.turn`. Round trips that were measured have all that a worker waited for in them."""
    waits = next((limit for limit in waiting if limit.name == ROUND_TRIPS), None)
    if waits is None or not path or scenario.policy == "pipelined" or scenario.measured_round_trips is not None:
        return ()
    # A worker that has the link to itself has all of its rate.
    alone = [replace(way, time_s=way.time_s / scenario.flows) if way.name == LINK_RATE else way for way in path]
    data = max(alone, key=lambda way: way.time_s)
    # Slow start's rounds carry bytes too: they are counted once.
    counted = scenario.round_trips_a_zone
    carrying_s = waits.time_s * counted.get(round_trips.SLOW_START, 0) / sum(counted.values())
    return waits, replace(data, time_s=max(0.0, data.time_s - carrying_s))


def alternatives(scenario: Scenario) -> list[Alternative]:
    """What would lift the limit that binds: single changes that save time, the best first; those for which it takes
    another secondary come last."""
    now = predict(scenario)
    found = [
        Alternative(change, predict(other), not scenario.can(other.policy)) for change, other in _changes(scenario)
    ]
    told = [other for other in found if other.prediction.limits and now.limits]
    faster = [other for other in told if other.prediction.time_s < now.time_s * (1 - SHARE_TOLD)]
    return sorted(faster, key=lambda other: (other.another_secondary, other.prediction.time_s))


def _changes(scenario: Scenario) -> Iterator[tuple[str, Scenario]]:
    for name in congestion.ALGORITHMS:
        if name != scenario.congestion:
            yield f"congestion control {name}", replace(scenario, congestion=name)
    # Another policy is another secondary: its settings and its work go with it.
    other = replace(scenario, limits=(), measured_round_trips=None, start_s=0.0, zone_s=None, record_s=None, soa="none")
    if scenario.policy != "pipelined" and scenario.zones > 1:
        piped = replace(other, policy="pipelined", connections=1, workers=WIDE_WINDOW)
        piping = f"pipelined AXFR on one connection, a window of {WIDE_WINDOW:,} zones"
        yield piping, piped
        if scenario.congestion != FILLS:
            yield f"{piping}, and {FILLS}", replace(piped, congestion=FILLS)
    elif scenario.workers < WIDE_WINDOW:
        yield f"a window of {WIDE_WINDOW:,} zones", replace(scenario, workers=WIDE_WINDOW, measured_round_trips=None)
    if scenario.policy == "one" and scenario.zones > 1:
        kept = replace(scenario, policy="reused", soa="same" if scenario.soa == "own" else scenario.soa)
        yield "connections kept (policy reused)", replace(kept, measured_round_trips=None)
    if scenario.policy != "replica":
        yield "database replication instead of AXFR (policy replica)", replace(other, policy="replica")
    if scenario.policy not in ("pipelined", "replica") and scenario.zones > scenario.workers:
        workers = scenario.workers * MORE_WORKERS
        yield f"{workers:,} workers", replace(scenario, workers=workers)
    if any(limit.zones_per_s for limit in scenario.limits):
        settings = ", ".join(limit.setting for limit in scenario.limits if limit.zones_per_s)
        yield f"a higher {settings}", replace(scenario, limits=())


def _path(scenario: Scenario) -> Iterator[Limit]:
    path, nbytes = scenario.path, scenario.nbytes
    spread = volume.REPLICA_SPREAD if scenario.policy == "replica" else 1.0
    if path.rate_bytes_per_s is not None:
        rate = volume.payload_rate(path.rate_bytes_per_s)
        yield Limit(
            LINK_RATE,
            volume.time_s(nbytes, rate),
            # What is lost behind the narrowest link took its share of the rate, what is lost before it did not.
            volume.FACTOR * spread / (1 - path.loss),
            f"{_size(nbytes)} at {_size(rate)}/s",
            _either("a faster link", *_less_to_send(scenario)),
            volume.SOURCE,
            low_factor=volume.FACTOR * spread,
        )
    each, rtt_s = _throughput(scenario)
    if math.isfinite(each) and not _in_first_window(scenario):
        law = congestion.ALGORITHMS[scenario.congestion]
        bound = congestion.is_bound(law.name, path.loss)
        kind = "at least " if bound else ""
        yield Limit(
            "congestion control",
            volume.time_s(nbytes, each * scenario.flows),
            law.factor * spread,
            f"{law.name} reaches {kind}{_size(each)}/s at {digits(1e3 * rtt_s)} ms and {digits(100 * path.loss)} % loss{_times(scenario)}",
            (
                "less loss"
                if law.window is None
                else "an algorithm that does not take loss for congestion, on the sender"
            )
            + ("; or more connections" if scenario.zones > 1 and scenario.policy != "replica" else ""),
            law.source,
            at_most=bound,
        )
    room = buffers.bytes_per_s(path.rtt_s, scenario.window_bytes)
    if math.isfinite(room):
        yield Limit(
            "receive buffers",
            volume.time_s(nbytes, room * scenario.flows),
            (buffers.FACTOR_WITH_LOSS if path.loss > 0 else buffers.FACTOR) * spread,
            f"{_size(scenario.window_bytes)} a round trip{_times(scenario)}",
            "raise the third figure of net.ipv4.tcp_rmem on the secondary and of tcp_wmem on the primary",
            buffers.SOURCE,
            low_factor=buffers.FACTOR * spread,
        )


def _less_to_send(scenario: Scenario) -> Iterator[str]:
    """A database sends no IXFR, and some primaries have none."""
    if scenario.policy not in ("replica", "remote") and primaries.has_ixfr(scenario.primary):
        yield "IXFR, which sends less"
    if scenario.zones > 1:
        yield "fewer zones"


def _times(scenario: Scenario) -> str:
    return f", over {scenario.flows:,} connections" if scenario.flows > 1 else ""


def _size(nbytes: float) -> str:
    """``22.8 MB``: powers of ten."""
    factor, unit = next(((f, u) for f, u in _SIZES if nbytes >= f), (1.0, "B"))
    return f"{digits(nbytes / factor)} {unit}"


def _zones(scenario: Scenario) -> str:
    return f"{scenario.zones:,} zone{'s' if scenario.zones > 1 else ''}"


def _sites(scenario: Scenario) -> str:
    return f"{scenario.sites:,} site{'s' if scenario.sites > 1 else ''}"


def _in_first_window(scenario: Scenario) -> bool:
    """Whether each connection carries so little that its window never matters."""
    first_bytes = round_trips.INITIAL_WINDOW * volume.SEGMENT_BYTES
    return scenario.policy in round_trips.CONNECTS and scenario.bytes_a_zone <= first_bytes


def _throughput(scenario: Scenario) -> tuple[float, float]:
    """Throughput of one connection, and the round trip that its own packets meet: the busier the path, the longer."""
    path = scenario.path
    most = math.inf if path.rate_bytes_per_s is None else volume.payload_rate(path.rate_bytes_per_s)
    rtt_s, each = path.rtt_s, math.inf
    for _ in range(ROUNDS):
        each = congestion.bytes_per_s(scenario.congestion, path.loss, rtt_s, path.jitter_s)
        packets_per_s = min(most, each * scenario.flows) / volume.SEGMENT_BYTES
        if not math.isfinite(packets_per_s):
            break
        rtt_s = path.round_trip_s(packets_per_s)
    return each, rtt_s


def _waiting(scenario: Scenario) -> Iterator[Limit]:
    found = scenario.round_trips_a_zone
    if scenario.policy in round_trips.CONNECTS and scenario.time_wait:
        # The first batch is free: then there is no wall to speak of.
        yield from _wall(scenario)
    if not found or scenario.path.rtt_s == 0:
        return
    count = sum(found.values())
    time_s, rtt_s = _round_trips(scenario, count)
    why = " + ".join(f"{name} {digits(number)}" for name, number in found.items())
    yield Limit(
        ROUND_TRIPS,
        time_s,
        scenario.round_trips_factor,
        f"{_zones(scenario)} × {digits(count)} ({why}) × {digits(1e3 * rtt_s)} ms / {min(scenario.workers, scenario.zones):,} at once",
        _fewer_round_trips(scenario),
        round_trips.SOURCE,
    )


def _fewer_round_trips(scenario: Scenario) -> str:
    if scenario.workers >= scenario.zones:
        return "fewer round trips a zone, or a shorter way; more workers do not help, all zones are fetched at once already"
    more = "zones asked for at once" if scenario.policy == "pipelined" else "workers"
    others = [words for policy, words in BETTER_POLICIES.get(scenario.policy, {}).items() if scenario.can(policy)]
    return _either(f"more {more} ({scenario.workers_setting})", *others)


def _either(first: str, *others: str) -> str:
    """``a``; ``a, or b``; ``a, b, or c``."""
    return ", ".join([first, *others[:-1]]) + (f", or {others[-1]}" if others else "")


def _wall(scenario: Scenario) -> Iterator[Limit]:
    time_s = ports.time_s(scenario.zones, scenario.ports)
    if time_s > 0:
        yield Limit(
            "ports",
            time_s,
            round_trips.FACTOR,
            f"{scenario.zones:,} connections with {scenario.ports:,} ports, each 60 s in TIME_WAIT: {ports.connections_per_s(scenario.ports):,.0f} a second",
            ("keep connections, " if scenario.can("reused") else "")
            + "widen net.ipv4.ip_local_port_range, more source addresses, or net.ipv4.tcp_tw_reuse = 1",
            ports.SOURCE,
            at_least=True,
        )


def _round_trips(scenario: Scenario, count: float) -> tuple[float, float]:
    """The time, and the round trip that this many packets meet."""
    path = scenario.path
    # In a stream of many zones what is lost is sent again while others arrive.
    loss = 0.0 if scenario.policy == "pipelined" else path.loss
    rtt_s, time_s = path.rtt_s, 0.0
    for _ in range(ROUNDS):
        zone_s = round_trips.zone_s(count, rtt_s, loss, congestion.rto_s(rtt_s, path.jitter_s))
        time_s = round_trips.time_s(scenario.zones, zone_s, scenario.workers)
        rtt_s = path.round_trip_s((count + 1) * scenario.zones / time_s)
    return time_s, rtt_s


def _secondary(scenario: Scenario) -> Iterator[Limit]:
    for limit in scenario.limits:
        if limit.zones_per_s:
            whose = "its default" if limit.default else "as set"
            yield Limit(
                limit.setting,
                scenario.zones / limit.zones_per_s,
                round_trips.FACTOR,
                f"{_zones(scenario)} at {limit.zones_per_s:g} a second ({limit.setting} = {limit.value}, {whose})",
                limit.remedy,
                f"{scenario.secondary}'s manual",
            )
    if scenario.zone_s is not None:
        records = scenario.zones * scenario.records
        begun = f"{digits(scenario.start_s)} s + " if scenario.start_s else ""
        more = "" if scenario.record_s is None else f" + {records:,.0f} records × {digits(1e6 * scenario.record_s)} µs"
        yield Limit(
            "secondary's work",
            scenario.start_s + scenario.zones * scenario.zone_s + records * (scenario.record_s or 0.0),
            max(1.0, scenario.work_factor),
            f"{begun}{_zones(scenario)} × {digits(1e3 * scenario.zone_s)} ms{more}",
            "a faster machine or server; what it costs at no distance says `dnsrig run many-zones`",
            scenario.work_source,
        )


def _primary(scenario: Scenario) -> Iterator[Limit]:
    if scenario.uplink_bytes_per_s is not None:
        rate = volume.payload_rate(scenario.uplink_bytes_per_s)
        yield Limit(
            "primary's uplink",
            sharing.uplink_time_s(scenario.nbytes, scenario.sites, rate),
            sharing.FACTOR,
            f"{_size(scenario.nbytes * scenario.sites)} to {_sites(scenario)} at {_size(rate)}/s",
            "more primaries, or sites that pass zones on to others",
            sharing.SOURCE,
        )
    yield from _primarys_work(scenario)


def _primarys_work(scenario: Scenario) -> Iterator[Limit]:
    each_s, whose = scenario.primary_zone_s, ""
    factor, source = max(sharing.FACTOR, scenario.work_factor), sharing.SOURCE
    if each_s is None and scenario.primary is not None:
        each_s = primaries.zone_s(scenario.primary, scenario.policy, scenario.transport, scenario.records)
        factor, source = WORK_FACTOR, primaries.SOURCE
        whose = f" of {primaries.known()[scenario.primary].title}"
    if each_s is not None:
        yield Limit(
            "primary's work",
            sharing.work_time_s(scenario.zones, scenario.sites, each_s),
            factor,
            f"{_zones(scenario)} × {_sites(scenario)} × {digits(1e3 * each_s)} ms{whose} on one CPU",
            "more CPUs or more primaries, or sites that pass zones on to others",
            source,
        )
